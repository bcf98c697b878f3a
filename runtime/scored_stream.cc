#include "runtime/scored_stream.h"

namespace kinglet {

std::vector<uint32_t> ScoredStream(const ModelDescription& description,
                                   std::span<const uint32_t> text) {
  std::vector<uint32_t> stream;
  stream.reserve(text.size() + 1);
  if (description.start_token) stream.push_back(*description.start_token);
  stream.insert(stream.end(), text.begin(), text.end());
  return stream;
}

uint64_t FirstPredicted(const ModelDescription& description) {
  return description.start_token ? 0 : 1;
}

}  // namespace kinglet

#include "converters/families/source_weights.h"

#include "converters/entries.h"
#include "converters/quoted.h"

namespace kinglet {
namespace {

// Entries of a tensor, or the largest number there is when they overflow.
uint64_t Entries(const std::vector<uint64_t>& shape) {
  uint64_t entries = 1;
  for (const uint64_t dimension : shape) {
    if (dimension == 0) return 0;
    if (__builtin_mul_overflow(entries, dimension, &entries)) entries = UINT64_MAX;
  }
  return entries;
}

}  // namespace

Result<SourceWeights> WeightsOf(const Checkpoint& checkpoint, const StateDict& tensors) {
  const uint64_t limit = 2 * checkpoint.file_size();
  uint64_t total = 0;
  SourceWeights weights;
  weights.reserve(tensors.size());
  for (const NamedTensor& named : tensors) {
    const uint64_t entries = Entries(named.tensor->shape);
    if (entries > limit - total) {
      return Status::Refusal(
          KINGLET_INVALID_CHECKPOINT, "checkpoint", checkpoint.path(),
          "at most " + std::to_string(limit) + " entries in all tensors, twice the file's bytes",
          "more, up to tensor " + QuotedName(named.name));
    }
    total += entries;
    weights.push_back({named.name, named.tensor->shape, [&checkpoint, tensor = named.tensor] {
                         return checkpoint.ReadFloats(*tensor);
                       }});
  }
  return weights;
}

Result<std::vector<float>> ReadFinite(const SourceTensor& tensor) {
  KINGLET_ASSIGN_OR_RETURN(std::vector<float> values, tensor.values());
  const uint64_t expected = Entries(tensor.shape);
  if (values.size() != expected) {
    return Status::Refusal(KINGLET_INVALID_CHECKPOINT, "checkpoint", "tensor " + tensor.name,
                           std::to_string(expected) + " values", std::to_string(values.size()));
  }
  KINGLET_RETURN_IF_ERROR(CheckFinite("checkpoint", "tensor " + tensor.name, values));
  return values;
}

}  // namespace kinglet

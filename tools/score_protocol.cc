#include "tools/score_protocol.h"

namespace kinglet {

std::string StreamProtocol(const ModelFile& file, const std::optional<uint64_t>& block,
                           uint64_t context, const std::string& empty_cache) {
  const ModelDescription& description = file.description();
  std::string text = description.start_token
                         ? "start token " + std::to_string(*description.start_token) + "; "
                         : "first token unscored; ";
  text += block ? "fresh state every block of " + std::to_string(*block) + " tokens, " +
                      std::to_string(context) + " of them context"
                : "state carried";
  const NeuralCache* cache = FindBlock<NeuralCache>(description);
  text += cache == nullptr
              ? "; no cache"
              : "; cache " + std::to_string(cache->capacity) + " " +
                    (cache->start == CacheStart::kPastCapacity ? "past capacity" : empty_cache);
  return text + "; digest " + file.digest();
}

}  // namespace kinglet

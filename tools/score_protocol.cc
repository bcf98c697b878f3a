#include "tools/score_protocol.h"

#include <cstdio>

namespace kinglet {

std::string ProtocolEnd(const Model& model) {
  const Backend& backend = model.backend();
  std::string text;
  if (backend.tolerance > 0) {
    char within[32];
    std::snprintf(within, sizeof(within), "%g", backend.tolerance);
    const Result<std::string> library = backend.needs();
    text = "; " + std::string(backend.name) + ", within " + within + " of ref";
    if (library.ok()) text += ", " + *library;
  }
  return text + "; digest " + model.file().digest();
}

std::string StreamProtocol(const Model& model, const std::optional<uint64_t>& block,
                           uint64_t context, const std::string& empty_cache, bool complete) {
  const ModelDescription& description = model.file().description();
  std::string text = description.start_token
                         ? "start token " + std::to_string(*description.start_token) + "; "
                         : "first token unscored; ";
  if (block) {
    text += "fresh state every block of " + std::to_string(*block) + " tokens, ";
    text += complete ? "complete sentences" : std::to_string(context) + " of them context";
  } else {
    text += "state carried";
  }
  const NeuralCache* cache = FindBlock<NeuralCache>(description);
  text += cache == nullptr
              ? "; no cache"
              : "; cache " + std::to_string(cache->capacity) + " " +
                    (cache->start == CacheStart::kPastCapacity ? "past capacity" : empty_cache);
  return text + ProtocolEnd(model);
}

}  // namespace kinglet

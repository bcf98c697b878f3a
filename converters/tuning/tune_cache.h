// Tunes a model's neural cache to a text: finds lambda and theta by local search
// (converters/tuning/cache_search.h). The rest of the model does not change.
#ifndef KINGLET_CONVERTERS_TUNING_TUNE_CACHE_H_
#define KINGLET_CONVERTERS_TUNING_TUNE_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "converters/tuning/cache_search.h"
#include "converters/tuning/text_trace.h"
#include "format/blocks.h"
#include "format/model_file.h"
#include "kinglet/status.h"

namespace kinglet {

struct TuneCacheOptions {
  std::optional<uint32_t> capacity;  // nullopt: the model's own
  size_t threads = 1;                // >= 1; the result does not depend on it
  RunProgress progress;              // counts up to TuningTokens(ids.size()) tokens
};

// A model's cache, and how well the model predicts the text with it.
struct ScoredCache {
  std::optional<NeuralCache> cache;
  double loss = 0;  // mean negative log-probability per token, as `kinglet score` gives it
};

struct TunedCache {
  CacheSearch search;
  uint64_t scored = 0;  // tokens of the text that losses are means over
  ScoredCache before, after;
  std::vector<std::byte> bytes;  // of the new file
  std::string digest;            // of the new file
};

// Largest difference, in nats per token, between the loss that the search computed and the loss of
// the new model. Both are computed in float and summed in double, in different orders.
inline constexpr double kTuningTolerance = 1e-5;

// The search starts at the model's own lambda and theta, or, for a model without a cache, at
// kPublishedStart. Golden values are replayed on the old model and recomputed for the new one.
// Errors: KINGLET_INVALID_ARGUMENT for a text without a scored token, a capacity of 0 or above the
// limit, no capacity for a model without a cache, and a text that has probability 0 with every
// cache; KINGLET_OUT_OF_MEMORY for a text that needs more than kTuningMemory; KINGLET_MISMATCH if
// the old model does not give its golden values, or the new model's loss is not within
// kTuningTolerance of the search's; those of running the model. REQUIRES: each id < vocabulary
// size.
Result<TunedCache> TuneCache(const std::shared_ptr<const ModelFile>& file,
                             std::span<const uint32_t> ids, const TuneCacheOptions& options);

// How many tokens TuneCache runs the network over for a text of `ids` tokens.
uint64_t TuningTokens(uint64_t ids);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_TUNING_TUNE_CACHE_H_

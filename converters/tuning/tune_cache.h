// A model file with its neural cache tuned to a text: the cache's lambda and theta are searched
// locally (converters/tuning/cache_search.h), everything else stays as it is.
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
  std::optional<uint32_t> capacity;  // none: the model's own
  size_t threads = 1;                // >= 1; changes no bit
  RunProgress progress;              // out of TuningTokens(ids.size())
};

// A model as the text sees it.
struct ScoredCache {
  std::optional<NeuralCache> cache;
  double loss = 0;  // mean negative log-probability per token, as `kinglet score` gives it
};

struct TunedCache {
  CacheSearch search;
  uint64_t scored = 0;  // tokens of the text that the losses are means over
  ScoredCache before, after;
  std::vector<std::byte> bytes;  // the new file
  std::string digest;            // its
};

// How far the search's own loss may be from that of the model it leads to, in nats per token. Both
// are computed in float and summed in double; only the order of the sums differs.
inline constexpr double kTuningTolerance = 1e-5;

// The search starts at the model's own numbers, or, for a model without a cache, at
// kPublishedStart. Golden values are replayed on the old model and recomputed for the new one.
// Errors: KINGLET_INVALID_ARGUMENT for a text of which no token is scored, a capacity of 0 or too
// many, no capacity for a model without a cache, a text that is impossible whatever the cache;
// KINGLET_OUT_OF_MEMORY for a text that needs more than kTuningMemory; KINGLET_MISMATCH if the old
// model misses its golden values, or the new one's loss is not within kTuningTolerance of the
// search's; those of running the model. REQUIRES: each id < vocabulary size.
Result<TunedCache> TuneCache(const std::shared_ptr<const ModelFile>& file,
                             std::span<const uint32_t> ids, const TuneCacheOptions& options);

// Tokens that TuneCache runs the network over, all passes together.
uint64_t TuningTokens(uint64_t ids);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_TUNING_TUNE_CACHE_H_

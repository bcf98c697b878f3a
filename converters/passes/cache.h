// The neural cache that the user asks for in place of the checkpoint's.
#ifndef KINGLET_CONVERTERS_PASSES_CACHE_H_
#define KINGLET_CONVERTERS_PASSES_CACHE_H_

#include <cstdint>
#include <optional>

#include "format/blocks.h"
#include "kinglet/status.h"

namespace kinglet {

// What is not given stays as it is.
struct CacheChange {
  std::optional<uint32_t> capacity = std::nullopt;  // 0 removes the cache
  std::optional<double> theta = std::nullopt;
  std::optional<double> lambda = std::nullopt;
  CacheStart start = CacheStart::kFirstPair;  // of a cache that the model did not have
};

// Errors: KINGLET_INVALID_ARGUMENT where a model without a cache is not given all three numbers.
// REQUIRES: the numbers are in the ranges that NeuralCache states.
Status ChangeCache(const CacheChange& change, ModelDescription& description);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PASSES_CACHE_H_

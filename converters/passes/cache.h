// Adds, changes or removes the neural cache (continuous cache: Grave, Joulin & Usunier 2017) of a
// model, as the user asks.
#ifndef KINGLET_CONVERTERS_PASSES_CACHE_H_
#define KINGLET_CONVERTERS_PASSES_CACHE_H_

#include <cstdint>
#include <optional>

#include "format/blocks.h"
#include "kinglet/status.h"

namespace kinglet {

// Numbers that are not given stay as they are.
struct CacheChange {
  std::optional<uint32_t> capacity = std::nullopt;  // 0 removes the cache
  std::optional<double> theta = std::nullopt;
  std::optional<double> lambda = std::nullopt;
  CacheStart start = CacheStart::kFirstPair;  // used for a new cache only
};

// Errors: KINGLET_INVALID_ARGUMENT if the model has no cache and not all three numbers are given.
// REQUIRES: the numbers are in the ranges that NeuralCache states.
Status ChangeCache(const CacheChange& change, ModelDescription& description);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PASSES_CACHE_H_

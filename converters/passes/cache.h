// Adds, changes or removes the neural cache (continuous cache: Grave, Joulin & Usunier 2017) of a
// model, as the user asks.
#ifndef KINGLET_CONVERTERS_PASSES_CACHE_H_
#define KINGLET_CONVERTERS_PASSES_CACHE_H_

#include <cstdint>
#include <optional>

#include "format/blocks.h"
#include "kinglet/status.h"

namespace kinglet {

// Values that are not given do not change.
struct CacheChange {
  std::optional<uint32_t> capacity = std::nullopt;  // 0 removes the cache
  std::optional<double> theta = std::nullopt;
  std::optional<double> lambda = std::nullopt;
};

// When a new cache begins to contribute: in a recurrent network past its capacity, like AWD-LSTM's
// cache, in other networks with its first pair.
CacheStart StartOfNewCache(const ModelDescription& description);

// Errors: KINGLET_INVALID_ARGUMENT if the model has no cache and not all three values are given.
// REQUIRES: the values are in the ranges that NeuralCache documents.
Status ChangeCache(const CacheChange& change, ModelDescription& description);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PASSES_CACHE_H_

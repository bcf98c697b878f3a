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
};

// When a new cache begins to take part: in a recurrent network past its capacity, as AWD-LSTM's, in
// others with its first pair.
CacheStart StartOfNewCache(const ModelDescription& description);

// Errors: KINGLET_INVALID_ARGUMENT if the model has no cache and not all three numbers are given.
// REQUIRES: the numbers are in the ranges that NeuralCache states.
Status ChangeCache(const CacheChange& change, ModelDescription& description);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PASSES_CACHE_H_

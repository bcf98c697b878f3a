// The memory in which queries compute their answers.
#ifndef KINGLET_RUNTIME_QUERIES_QUERY_MEMORY_H_
#define KINGLET_RUNTIME_QUERIES_QUERY_MEMORY_H_

#include <cstdint>
#include <type_traits>
#include <variant>
#include <vector>

#include "format/small_build.h"
#include "runtime/model.h"
#include "runtime/queries/cached_tokens.h"
#include "runtime/queries/query_options.h"

namespace kinglet {

// Of<T> for the floats of the backend, which are double in ref64.
template <template <class> class Of>
using EitherReal =
    std::conditional_t<kSmallBuild, std::variant<Of<float>>, std::variant<Of<float>, Of<double>>>;

// The memory of all streams of a session, which use it one query at a time. The constructor
// reserves room for the largest query, so that no query allocates here. T is the backend's real
// type.
template <class T>
struct QueryMemory {
  // Throws std::bad_alloc.
  QueryMemory(const Model& model, uint32_t streams);
  // The bytes allocated for each stream, of which kLanesTogether count at most.
  static uint64_t BytesPerStream(const Model& model);

  // The tokens of one stream's neural cache.
  struct Table {
    CachedTokens<T> tokens;
    const void* owner;  // the NeuralCacheMix whose tokens they are; null if the table is unused
  };
  // A table for each stream that answers a query together with others. Tables of all streams of the
  // session would not stay in the processor's caches from one token to the next.
  std::vector<Table> tables;
  std::vector<T> tokens;         // a value for each token of one cluster
  std::vector<uint32_t> places;  // indices of tokens in a tile of logits
  // For each token of one cluster that the neural cache holds: its id, its weight in the cache, and
  // its log p with the cache mixed in.
  std::vector<uint32_t> held_ids;
  std::vector<T> held_weights, held_mixed;
};

// Elements that ClusterFunctions::at_least needs in `places` beyond the tokens that it looks at.
inline constexpr size_t kPlacesMargin = 16;

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_QUERIES_QUERY_MEMORY_H_

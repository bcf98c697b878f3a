// The memory in which queries compute their answers.
#ifndef KINGLET_RUNTIME_QUERIES_QUERY_MEMORY_H_
#define KINGLET_RUNTIME_QUERIES_QUERY_MEMORY_H_

#include <cstdint>
#include <vector>

#include "runtime/model.h"
#include "runtime/queries/cached_words.h"
#include "runtime/queries/query_options.h"

namespace kinglet {

// One for all streams of a session, which use it one query at a time. Everything is reserved for
// the largest query when it is created, so that no query allocates here. T is the backend's real
// type.
template <class T>
struct QueryMemory {
  // Throws std::bad_alloc.
  QueryMemory(const Model& model, uint32_t streams);
  // What it allocates for each stream, of which kLanesTogether count at most.
  static uint64_t BytesPerStream(const Model& model);

  // The words of one stream's neural cache.
  struct Table {
    CachedWords<T> words;
    const void* owner;  // the NeuralCacheMix whose words they are; null: nobody's
  };
  // One for each stream that answers a query together with others. A table for every stream of the
  // session would have to come from memory, one after the other, for every token.
  std::vector<Table> tables;
  std::vector<T> words;          // a number for each word of one cluster
  std::vector<uint32_t> places;  // of words in a tile of logits
  // Room for the words of one cluster that the neural cache holds: ids, weights in the cache, and
  // log p with the cache mixed in.
  std::vector<uint32_t> held_ids;
  std::vector<T> held_weights, held_mixed;
};

// Room that ClusterFunctions::at_least needs in `places` beyond the words it looks at.
inline constexpr size_t kPlacesMargin = 16;

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_QUERIES_QUERY_MEMORY_H_

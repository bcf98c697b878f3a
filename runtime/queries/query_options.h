// Options of queries, and the number of streams that one computation serves.
#ifndef KINGLET_RUNTIME_QUERIES_QUERY_OPTIONS_H_
#define KINGLET_RUNTIME_QUERIES_QUERY_OPTIONS_H_

#include <cstddef>
#include <cstdint>

namespace kinglet {

// The probability of a token while the neural cache is empty (before the second token).
enum class EmptyCache : uint8_t {
  kReference,   // (1 - lambda) softmax, as in the original framework: the mass lambda is lost
  kNormalised,  // softmax
};

// What a query computes before it answers: the clusters that it needs, or all clusters and the
// neural cache. kAll is for measuring models with random weights, in which every cluster is so
// improbable that queries skip clusters which they would compute for a trained model.
enum class Computing : uint8_t { kNeeded, kAll };

// The most streams of a session that answer a query together: few enough that the logits of a large
// vocabulary are still in the processor's caches when they are read.
inline constexpr size_t kLanesTogether = 8;

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_QUERIES_QUERY_OPTIONS_H_

// The query for a token's interval, and its inverse, for entropy coders. The integers below 2^32
// are divided into one interval for each token, in the order of ids: no interval is empty, and
// their lengths are in proportion to the tokens' probabilities.
//
// Definition. Each of the V tokens gets one integer; the other R = 2^32 - V are divided among the
// tokens. Share(n, x, y) = floor(n * (x / y)) in double, 0 if y = 0. All sums are in double.
//
//   Of a cluster of n logits, E(i) is the sum of exp(logit - reference) over tokens before token i:
//     complete tiles of kSumTile logits by the sums that made the softmax's normaliser, then token
//     by token; the latter part is at most the sum of the tile.
//   s = E(n) of the head, or exp(logit of the cluster - reference) of a tail, divided by the sum of
//     these over all clusters: the softmax's probability of a cluster.
//   U(i) is the sum of floor(2^52 m(w)) over its tokens w before token i, m(w) being the fraction
//     of the neural cache's weight that is on w; lambda is 0 if the cache is empty or the model has
//     no cache.
//   F(i) = (1 - lambda) s E(i) / E(n) + lambda U(i) / 2^52
//
//   A cluster begins at (tokens before it) + Share(R, sum of F(n) of the clusters before it, sum of
//     F(n) of all). Up to where the next cluster begins there are r integers more than tokens.
//   Token i of a cluster begins at (begin of the cluster) + i + Share(r, F(i), F(n)), and ends
//     where the next begins.
//
// So a token's interval needs only the head and its cluster, and of these only one tile.
#ifndef KINGLET_RUNTIME_QUERIES_INTERVALS_H_
#define KINGLET_RUNTIME_QUERIES_INTERVALS_H_

#include <cstdint>

#include "runtime/queries/distribution.h"
#include "runtime/queries/interval.h"

namespace kinglet {

// The interval of token `id`. Errors: those of Distribution::OpenCluster. Throws std::bad_alloc.

// REQUIRES: id < vocabulary size.
template <class T>
Result<Interval> IntervalOfToken(QueriedStream<T>& stream, uint32_t id);

// The token whose interval contains the point. Errors: those of Distribution::OpenCluster. Throws
// std::bad_alloc.
template <class T>
Result<uint32_t> TokenOfPoint(QueriedStream<T>& stream, uint32_t point);

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_QUERIES_INTERVALS_H_

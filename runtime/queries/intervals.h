// The query for a word's interval, and its inverse, for entropy coders. The integers below 2^32 are
// divided into one interval for each word, in the order of ids: no interval is empty, and their
// lengths are in proportion to the words' probabilities.
//
// Definition. Each of the V words gets one integer; the other R = 2^32 - V are divided among the
// words. Share(n, x, y) = floor(n * (x / y)) in double, 0 if y = 0. All sums are in double.
//
//   Of a cluster of n logits, E(i) is the sum of exp(logit - reference) over words before word i:
//     complete tiles of kSumTile logits by the sums that made the softmax's normaliser, then word
//     by word; the latter part is at most the sum of the tile.
//   s = E(n) of the head, or exp(logit of the cluster - reference) of a tail, divided by the sum of
//     these over all clusters: the softmax's probability of a cluster.
//   U(i) is the sum of floor(2^52 m(w)) over its words w before word i, m(w) being the fraction of
//     the neural cache's weight that is on w; lambda is 0 if the cache is empty or the model has no
//     cache.
//   F(i) = (1 - lambda) s E(i) / E(n) + lambda U(i) / 2^52
//
//   A cluster begins at (words before it) + Share(R, sum of F(n) of the clusters before it, sum of
//     F(n) of all). Up to where the next cluster begins there are r integers more than words.
//   Word i of a cluster begins at (begin of the cluster) + i + Share(r, F(i), F(n)), and ends where
//     the next begins.
//
// So a word's interval needs only the head and its cluster, and of these only one tile.
#ifndef KINGLET_RUNTIME_QUERIES_INTERVALS_H_
#define KINGLET_RUNTIME_QUERIES_INTERVALS_H_

#include <cstdint>

#include "runtime/queries/distribution.h"
#include "runtime/queries/interval.h"

namespace kinglet {

// The interval of word `id`. Errors: those of Distribution::OpenCluster. Throws std::bad_alloc.

// REQUIRES: id < vocabulary size.
template <class T>
Result<Interval> IntervalOfWord(QueriedStream<T>& stream, uint32_t id);

// The word whose interval contains the point. Errors: those of Distribution::OpenCluster. Throws
// std::bad_alloc.
template <class T>
Result<uint32_t> WordOfPoint(QueriedStream<T>& stream, uint32_t point);

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_QUERIES_INTERVALS_H_

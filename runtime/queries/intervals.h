// The query for a word's interval: every word has an interval of the integers below 2^32, in the
// order of ids, none empty, together all of them, in proportion to the words' probabilities. An
// entropy coder needs that, and its inverse.
//
// Definition. R = 2^32 - V integers are shared out beyond one for each of the V words; Share(n, x,
// y) = floor(n * (x / y)) in double, 0 if y = 0. All sums are in double.
//
//   Of a cluster of n logits, E(i) is the sum of exp(logit - reference) over words before word i:
//     whole blocks of kSumBlock logits by the sums that made the softmax's normaliser, then word by
//     word; the latter part is at most the sum of the block.
//   s = E(n) of the head, or exp(logit of the cluster - reference) of a tail, divided by the sum of
//     these over all clusters: the softmax's share of a cluster.
//   U(i) is the sum of floor(2^52 m(w)) over its words w before word i, m(w) being the part of the
//     neural cache's weights that is on w; lambda is 0 if the cache is empty or there is none.
//   F(i) = (1 - lambda) s E(i) / E(n) + lambda U(i) / 2^52
//
//   A cluster begins at (words before it) + Share(R, sum of F(n) of the clusters before it, sum of
//     F(n) of all), and has beyond its words r integers up to where the next one begins.
//   Its word i begins at (begin of the cluster) + i + Share(r, F(i), F(n)), and ends where the next
//     begins.
//
// So a word's interval needs the head and its cluster only, and of these one block.
#ifndef KINGLET_RUNTIME_QUERIES_INTERVALS_H_
#define KINGLET_RUNTIME_QUERIES_INTERVALS_H_

#include <cstdint>

#include "runtime/queries/distribution.h"
#include "runtime/queries/interval.h"

namespace kinglet {

// The errors of both are those of Distribution::OpenCluster. Both throw std::bad_alloc.

// REQUIRES: id < vocabulary size.
template <class T>
Result<Interval> IntervalOfWord(QueriedStream<T>& stream, uint32_t id);

// The word whose interval has the point.
template <class T>
Result<uint32_t> WordOfPoint(QueriedStream<T>& stream, uint32_t point);

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_QUERIES_INTERVALS_H_

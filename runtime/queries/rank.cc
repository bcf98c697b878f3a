#include "runtime/queries/rank.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/queries/logit_threshold.h"
#include "runtime/queries/upper_bound.h"

namespace kinglet {
namespace {

// The number of tokens [first, last) of an open cluster whose logits are at least `threshold`.
template <class T>
uint32_t CountLogits(Distribution<T>& distribution, const ClusterView<T>& cluster, uint32_t first,
                     uint32_t last, T threshold) {
  uint32_t count = 0, n = 0;
  for (uint32_t begin = first; begin < last; begin += n) {
    n = std::min<uint32_t>(kSumTile - begin % kSumTile, last - begin);
    distribution.work().arithmetic.others += 1;
    if (cluster.tile_largest[begin / kSumTile] < threshold) continue;
    const T* const logits = cluster.logits + begin;
    for (uint32_t i = 0; i < n; ++i) count += logits[i] >= threshold ? 1 : 0;
    distribution.work().arithmetic.others += n;
  }
  return count;
}

// The number of tokens of an open cluster that come before token `id`, whose log p is `own`. In a
// cluster other than its own, all ids are above `id` or all are below.
template <class T>
uint32_t CountTokensBefore(QueriedStream<T>& stream, size_t index, uint32_t id, T own) {
  Distribution<T>& distribution = *stream.distribution;
  const NeuralCacheMix<T>& cache = distribution.cache();
  const ClusterView<T> cluster = distribution.View(stream.frame, index);
  OperationTally& arithmetic = distribution.work().arithmetic;
  // The cluster's tokens up to `middle` come first if they are equally probable.
  const uint32_t middle =
      std::clamp(id, cluster.first, cluster.first + cluster.size) - cluster.first;
  const uint32_t own_index = id - cluster.first;  // at least `size` for a token of another cluster
  const uint32_t after = middle + (own_index == middle && middle < cluster.size ? 1 : 0);
  const T never = std::numeric_limits<T>::infinity();
  const T equal =
      middle > 0 ? LogitThreshold(cluster.largest, cluster.terms, own, arithmetic) : never;
  const T above = after < cluster.size ? LogitThreshold(cluster.largest, cluster.terms,
                                                        std::nextafter(own, never), arithmetic)
                                       : never;
  uint32_t count = CountLogits(distribution, cluster, 0, middle, equal) +
                   CountLogits(distribution, cluster, after, cluster.size, above);
  // Tokens that the cache holds were counted by their logits alone.
  QueryMemory<T>& memory = distribution.memory();
  const size_t held = cache.MixHeldTokens(cluster, distribution.functions(), memory);
  for (size_t i = 0; i < held; ++i) {
    const uint32_t token = memory.held_ids[i];
    if (token == id) continue;
    const bool comes_first = token < id;
    const T softmax = cluster.logits[token - cluster.first], mixed = memory.held_mixed[i];
    const uint32_t counted = softmax >= (comes_first ? equal : above) ? 1 : 0;
    const uint32_t counts = mixed > own || (comes_first && mixed == own) ? 1 : 0;
    count = count - counted + counts;
  }
  distribution.CountTokens(static_cast<double>(held), static_cast<double>(held));
  arithmetic.others += 2 * static_cast<double>(held);
  return count;
}

}  // namespace

template <class T>
Result<uint32_t> RankOfToken(QueriedStream<T>& stream, uint32_t id) {
  Distribution<T>& distribution = *stream.distribution;
  const std::span<QueriedStream<T>> alone(&stream, 1);
  const size_t own_cluster = distribution.ClusterOf(id);
  KINGLET_RETURN_IF_ERROR(Distribution<T>::OpenCluster(alone, 0));
  KINGLET_RETURN_IF_ERROR(Distribution<T>::OpenCluster(alone, own_cluster));
  KINGLET_RETURN_IF_ERROR(Distribution<T>::OpenCache(alone));
  const NeuralCacheMix<T>& cache = distribution.cache();
  const T weight = cache.WeightOf(id);
  const T own = cache.MixedLogProbability(
      distribution.View(stream.frame, own_cluster).SoftmaxLogProbability(id), weight);
  distribution.CountTokens(1, weight != T{0} ? 1 : 0);
  uint32_t before = 0;
  for (size_t i = 0; i < distribution.plan().clusters.size(); ++i) {
    if (i != own_cluster && i != 0) {
      const T heaviest = cache.HeaviestTokenOf(i, distribution.work().arithmetic);
      const T cluster = distribution.ClusterLogProbability(stream.frame, i);
      if (UpperBound(distribution, cluster, heaviest) < own) continue;
      KINGLET_RETURN_IF_ERROR(Distribution<T>::OpenCluster(alone, i));
      const T token = distribution.View(stream.frame, i).LargestLogProbability();
      if (UpperBound(distribution, token, heaviest) < own) continue;
    }
    before += CountTokensBefore(stream, i, id, own);
  }
  return before + 1;
}

template Result<uint32_t> RankOfToken(QueriedStream<float>&, uint32_t);
template Result<uint32_t> RankOfToken(QueriedStream<double>&, uint32_t);

}  // namespace kinglet

#include "runtime/queries/set_queries.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "kernels/functions.h"
#include "runtime/queries/upper_bound.h"
#include "runtime/queries/word_probabilities.h"

namespace kinglet {
namespace {

// A cluster of which the set has more than one word in so many is computed wholly: in vectors its
// words take a fraction of the time that they take one by one.
constexpr uint32_t kWordsOfVector = 6;

// log p of a word that the cache does not hold, or holds with a weight.
template <class T>
T LogProbabilityOf(const Distribution<T>& distribution, const ClusterView<T>& cluster, uint32_t id,
                   T weight) {
  return distribution.cache().MixedLogProbability(cluster.SoftmaxLogProbability(id), weight);
}

// The largest weight in the cache of a word of the set and the cluster, or 0.
template <class T>
T HeaviestOfSet(Distribution<T>& distribution, const WordSet& set, size_t index) {
  T heaviest{0};
  double compared = 0;
  distribution.cache().ForEachHeldOf(index, [&](uint32_t id, T weight) {
    if (set.Contains(id)) heaviest = std::max(heaviest, weight);
    ++compared;
  });
  distribution.work().arithmetic.others += compared;
  return heaviest;
}

// Offers the words of the set in an open cluster that can be among the best.
template <class T>
void OfferWordsOfSet(QueriedStream<T>& stream, size_t index, const WordSet& set,
                     BestCandidates& best) {
  Distribution<T>& distribution = *stream.distribution;
  const ClusterView<T> cluster = distribution.View(stream.frame, index);
  OperationTally& arithmetic = distribution.work().arithmetic;
  const T lowest = -std::numeric_limits<T>::infinity();
  T least_logit = lowest, least_sum{0};
  const auto raise = [&] {
    const auto threshold = static_cast<T>(best.Threshold());
    if (threshold == lowest) return;
    least_logit = LeastLogit(cluster.terms, threshold);
    least_sum = LeastBlockSum(cluster.terms, threshold);
    arithmetic += {2, 12, 12};
  };
  raise();
  double words = 0, held = 0, compared = 0;
  uint32_t n = 0;
  for (uint32_t begin = 0; begin < cluster.size; begin += n) {
    n = std::min(kSumBlock, cluster.size - begin);
    ++compared;
    const bool may_have_best = !(cluster.block_sums[begin / kSumBlock] < least_sum);
    set.ForEachOf(cluster.first + begin, n, [&](uint32_t id) {
      const T weight = distribution.cache().WeightOf(id);
      if (weight == T{0}) {
        if (!may_have_best) return;
        if (least_logit != lowest) ++compared;
        if (cluster.logits[id - cluster.first] < least_logit) return;
      } else {
        ++held;
      }
      ++words;
      const T log_p = LogProbabilityOf(distribution, cluster, id, weight);
      if (best.Offer({id, static_cast<double>(log_p)})) raise();
    });
  }
  distribution.CountWords(words, held);
  arithmetic.others += compared;
  if (index > 0) arithmetic += {0, 2, 0};  // log p of the cluster
}

// Opens what the words of the set need, and calls f(id, p) for each of them in the order of ids.
template <class T, class F>
Status ForEachProbability(QueriedStream<T>& stream, const WordSet& set, const F& f) {
  if (set.size() == 0) return Status();
  Distribution<T>& distribution = *stream.distribution;
  const std::span<QueriedStream<T>> alone(&stream, 1);
  KINGLET_RETURN_IF_ERROR(Distribution<T>::OpenCluster(alone, 0));
  KINGLET_RETURN_IF_ERROR(Distribution<T>::OpenCache(alone));
  const auto& clusters = distribution.plan().clusters;
  for (size_t index = 0; index < clusters.size(); ++index) {
    const uint32_t first = clusters[index].first, size = clusters[index].size;
    const uint32_t count = set.CountOf(first, size);
    if (count == 0) continue;
    KINGLET_RETURN_IF_ERROR(Distribution<T>::OpenCluster(alone, index));
    distribution.work().arithmetic += {0, static_cast<double>(count), static_cast<double>(count)};
    if (count > size / kWordsOfVector) {
      std::vector<T>& words = distribution.memory().words;
      words.resize(size);
      WriteClusterWords(stream, index, words.data());
      Exponentiate(stream, std::span<T>(words));
      set.ForEachOf(first, size,
                    [&](uint32_t id) { f(id, static_cast<double>(words[id - first])); });
      continue;
    }
    const ClusterView<T> cluster = distribution.View(stream.frame, index);
    double held = 0;
    set.ForEachOf(first, size, [&](uint32_t id) {
      const T weight = distribution.cache().WeightOf(id);
      held += weight != T{0} ? 1 : 0;
      f(id, static_cast<double>(Exp(LogProbabilityOf(distribution, cluster, id, weight))));
    });
    distribution.CountWords(static_cast<double>(count), held);
    if (index > 0) distribution.work().arithmetic += {0, 2, 0};  // log p of the cluster
  }
  return Status();
}

}  // namespace

template <class T>
Result<std::vector<Candidate>> FindTopKOf(QueriedStream<T>& stream, const WordSet& set,
                                          uint32_t k) {
  if (k == 0 || set.size() == 0) return std::vector<Candidate>();
  Distribution<T>& distribution = *stream.distribution;
  const std::span<QueriedStream<T>> alone(&stream, 1);
  KINGLET_RETURN_IF_ERROR(Distribution<T>::OpenCluster(alone, 0));
  KINGLET_RETURN_IF_ERROR(Distribution<T>::OpenCache(alone));
  BestCandidates best(std::min(k, set.size()));
  const auto& clusters = distribution.plan().clusters;
  for (size_t index = 0; index < clusters.size(); ++index) {
    if (set.CountOf(clusters[index].first, clusters[index].size) == 0) continue;
    if (index > 0) {
      const T heaviest = HeaviestOfSet(distribution, set, index);
      const auto can_skip = [&](T log_probability) {
        const T bound = UpperBound(distribution, log_probability, heaviest);
        return !best.CouldTake(static_cast<double>(bound));
      };
      if (can_skip(distribution.ClusterLogProbability(stream.frame, index))) continue;
      KINGLET_RETURN_IF_ERROR(Distribution<T>::OpenCluster(alone, index));
      if (can_skip(distribution.View(stream.frame, index).LargestLogProbability())) continue;
    }
    OfferWordsOfSet(stream, index, set, best);
  }
  return std::move(best).Sorted();
}

template <class T>
Result<double> ProbabilityOfSet(QueriedStream<T>& stream, const WordSet& set) {
  double sum = 0;
  KINGLET_RETURN_IF_ERROR(
      ForEachProbability(stream, set, [&sum](uint32_t, double p) { sum += p; }));
  return sum;
}

template <class T>
Status AddProbabilities(QueriedStream<T>& stream, const WordSet& set,
                        std::span<const uint32_t> part_of, std::span<double> sums) {
  return ForEachProbability(stream, set, [&](uint32_t id, double p) { sums[part_of[id]] += p; });
}

template Result<std::vector<Candidate>> FindTopKOf(QueriedStream<float>&, const WordSet&, uint32_t);
template Result<std::vector<Candidate>> FindTopKOf(QueriedStream<double>&, const WordSet&,
                                                   uint32_t);
template Result<double> ProbabilityOfSet(QueriedStream<float>&, const WordSet&);
template Result<double> ProbabilityOfSet(QueriedStream<double>&, const WordSet&);
template Status AddProbabilities(QueriedStream<float>&, const WordSet&, std::span<const uint32_t>,
                                 std::span<double>);
template Status AddProbabilities(QueriedStream<double>&, const WordSet&, std::span<const uint32_t>,
                                 std::span<double>);

}  // namespace kinglet

#include "runtime/queries/set_queries.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "kernels/functions.h"
#include "runtime/queries/token_probabilities.h"
#include "runtime/queries/upper_bound.h"

namespace kinglet {
namespace {

// If the set contains more than one in kTokensOfVector tokens of a cluster, all tokens of the
// cluster are computed, in vectors. A smaller part takes fewer operations token by token.
constexpr uint32_t kTokensOfVector = 2;

// log p of a token of this weight in the cache, which is 0 for a token that the cache does not
// hold.
template <class T>
T LogProbabilityOf(const Distribution<T>& distribution, const ClusterView<T>& cluster, uint32_t id,
                   T weight) {
  return distribution.cache().MixedLogProbability(cluster.SoftmaxLogProbability(id), weight);
}

// A token of the set that the cache holds.
template <class T>
struct HeldToken {
  uint32_t id;
  T weight;
};

// Finds the tokens of the set in a cluster that the cache holds.
template <class T>
void FindHeldTokens(Distribution<T>& distribution, const TokenSet& set, size_t index,
                    std::vector<HeldToken<T>>& held) {
  held.clear();
  double compared = 0;
  distribution.cache().ForEachHeldOf(index, [&](uint32_t id, T weight) {
    if (set.Contains(id)) held.push_back({id, weight});
    ++compared;
  });
  distribution.work().arithmetic.others += compared;
}

// Offers the tokens of the set in an open cluster that can be among the best. The tokens that the
// cache holds come first, because logits do not bound their log p.
template <class T>
Status OfferTokensOfSet(QueriedStream<T>& stream, size_t index, const TokenSet& set,
                        const std::vector<HeldToken<T>>& held, BestCandidates& best) {
  Distribution<T>& distribution = *stream.distribution;
  const NeuralCacheMix<T>& cache = distribution.cache();
  const ClusterView<T> cluster = distribution.View(stream.frame, index);
  OperationTally& arithmetic = distribution.work().arithmetic;
  for (const auto& [id, weight] : held) {
    const T log_p = LogProbabilityOf(distribution, cluster, id, weight);
    best.Offer({id, static_cast<double>(log_p)});
  }
  const T lowest = -std::numeric_limits<T>::infinity();
  T least_logit = lowest;
  const auto raise = [&] {
    const auto threshold = static_cast<T>(best.Threshold());
    if (threshold == lowest) return;
    least_logit = LeastLogit(cluster.terms, threshold);
    arithmetic += {1, 11, 7};
  };
  raise();
  uint32_t tokens = 0, compared = 0, n = 0;
  for (uint32_t begin = 0; begin < cluster.size; begin += n) {
    n = std::min(kSumTile, cluster.size - begin);
    if (least_logit != lowest) {
      ++compared;
      if (cluster.tile_largest[begin / kSumTile] < least_logit) continue;
    }
    KINGLET_RETURN_IF_ERROR(distribution.TakeCancel());
    set.ForEachOf(cluster.first + begin, n, [&](uint32_t id) {
      compared += least_logit != lowest ? 1 : 0;
      if (cluster.logits[id - cluster.first] < least_logit) return;
      if (cache.WeightOf(id) != T{0}) return;  // offered above
      ++tokens;
      const T log_p = LogProbabilityOf(distribution, cluster, id, T{0});
      if (best.Offer({id, static_cast<double>(log_p)})) raise();
    });
  }
  const auto of_cache = static_cast<double>(held.size());
  distribution.CountTokens(tokens + of_cache, of_cache);
  arithmetic.others += compared;
  if (index > 0) arithmetic += {0, 2, 0};  // log p of the cluster
  return Status();
}

// Computes the clusters that the tokens of the set need, and calls f(id, p) for each token of the
// set in the order of ids.
template <class T, class F>
Status ForEachProbability(QueriedStream<T>& stream, const TokenSet& set, const F& f) {
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
    OperationTally& arithmetic = distribution.work().arithmetic;
    arithmetic.additions += count;
    if (count > size / kTokensOfVector) {
      std::vector<T>& tokens = distribution.memory().tokens;
      tokens.resize(size);
      WriteClusterSums(stream, index, tokens.data());
      Exponentiate(stream, std::span<T>(tokens));
      arithmetic.others += size;
      set.ForEachOf(first, size,
                    [&](uint32_t id) { f(id, static_cast<double>(tokens[id - first])); });
      continue;
    }
    arithmetic.others += count;
    const ClusterView<T> cluster = distribution.View(stream.frame, index);
    double held = 0;
    set.ForEachOf(first, size, [&](uint32_t id) {
      const T weight = distribution.cache().WeightOf(id);
      held += weight != T{0} ? 1 : 0;
      f(id, static_cast<double>(Exp(LogProbabilityOf(distribution, cluster, id, weight))));
    });
    distribution.CountTokens(static_cast<double>(count), held);
    if (index > 0) arithmetic += {0, 2, 0};  // log p of the cluster
  }
  return Status();
}

}  // namespace

template <class T>
Result<std::vector<Candidate>> FindTopKOf(QueriedStream<T>& stream, const TokenSet& set,
                                          uint32_t k) {
  if (k == 0 || set.size() == 0) return std::vector<Candidate>();
  Distribution<T>& distribution = *stream.distribution;
  const std::span<QueriedStream<T>> alone(&stream, 1);
  KINGLET_RETURN_IF_ERROR(Distribution<T>::OpenCluster(alone, 0));
  KINGLET_RETURN_IF_ERROR(Distribution<T>::OpenCache(alone));
  const bool is_all = k >= set.size();  // then no token and no bound is compared with the k-th best
  BestCandidates best(is_all ? size_t{set.size()} + 1 : k);
  const auto& clusters = distribution.plan().clusters;
  std::vector<HeldToken<T>> held;
  for (size_t index = 0; index < clusters.size(); ++index) {
    if (!set.HasAnyOf(clusters[index].first, clusters[index].size)) continue;
    FindHeldTokens(distribution, set, index, held);
    if (index > 0 && is_all) {
      KINGLET_RETURN_IF_ERROR(Distribution<T>::OpenCluster(alone, index));
    } else if (index > 0) {
      T heaviest{0};
      for (const HeldToken<T>& token : held) heaviest = std::max(heaviest, token.weight);
      const auto can_skip = [&](T log_probability) {
        const T bound = UpperBound(distribution, log_probability, heaviest);
        return !best.CouldTake(static_cast<double>(bound));
      };
      if (can_skip(distribution.ClusterLogProbability(stream.frame, index))) continue;
      KINGLET_RETURN_IF_ERROR(Distribution<T>::OpenCluster(alone, index));
      if (can_skip(distribution.View(stream.frame, index).LargestLogProbability())) continue;
    }
    KINGLET_RETURN_IF_ERROR(OfferTokensOfSet(stream, index, set, held, best));
  }
  return std::move(best).Sorted([&] { return distribution.TakeCancel(); });
}

template <class T>
Result<double> ProbabilityOfSet(QueriedStream<T>& stream, const TokenSet& set) {
  double sum = 0;
  KINGLET_RETURN_IF_ERROR(
      ForEachProbability(stream, set, [&sum](uint32_t, double p) { sum += p; }));
  return sum;
}

template <class T>
Status AddProbabilities(QueriedStream<T>& stream, const TokenSet& set,
                        std::span<const uint32_t> part_of, std::span<double> sums) {
  return ForEachProbability(stream, set, [&](uint32_t id, double p) { sums[part_of[id]] += p; });
}

template Result<std::vector<Candidate>> FindTopKOf(QueriedStream<float>&, const TokenSet&,
                                                   uint32_t);
template Result<std::vector<Candidate>> FindTopKOf(QueriedStream<double>&, const TokenSet&,
                                                   uint32_t);
template Result<double> ProbabilityOfSet(QueriedStream<float>&, const TokenSet&);
template Result<double> ProbabilityOfSet(QueriedStream<double>&, const TokenSet&);
template Status AddProbabilities(QueriedStream<float>&, const TokenSet&, std::span<const uint32_t>,
                                 std::span<double>);
template Status AddProbabilities(QueriedStream<double>&, const TokenSet&, std::span<const uint32_t>,
                                 std::span<double>);

}  // namespace kinglet

#include "runtime/queries/top_k.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "runtime/queries/upper_bound.h"

namespace kinglet {
namespace {

// Logits that are compared at once while fewer than k tokens are found: any of them may be taken.
constexpr uint32_t kFirstTokens = 256;

// Whether no token of a tail can be among the best, judged before the tail is computed: no token is
// more probable than its cluster.
template <class T>
bool CanSkipTail(QueriedStream<T>& stream, size_t tail, T heaviest_held,
                 const BestCandidates& best) {
  Distribution<T>& distribution = *stream.distribution;
  const T cluster = distribution.ClusterLogProbability(stream.frame, tail);
  return !best.CouldTake(static_cast<double>(UpperBound(distribution, cluster, heaviest_held)));
}

// Whether no token of a tail can be among the best, judged once the tail is computed, by the log p
// of its most probable token.
template <class T>
bool CanSkipTokensOfTail(QueriedStream<T>& stream, size_t tail, T heaviest_held,
                         const BestCandidates& best) {
  Distribution<T>& distribution = *stream.distribution;
  const T token = distribution.View(stream.frame, tail).LargestLogProbability();
  return !best.CouldTake(static_cast<double>(UpperBound(distribution, token, heaviest_held)));
}

// Offers the tokens of an open cluster that the cache holds, or those of them that can be among the
// best. Returns how many it looked at.
template <class T>
size_t OfferHeldTokens(QueriedStream<T>& stream, const ClusterView<T>& cluster,
                       BestCandidates& best) {
  Distribution<T>& distribution = *stream.distribution;
  const NeuralCacheMix<T>& cache = distribution.cache();
  QueryMemory<T>& memory = distribution.memory();
  // The threshold is fixed before the loops, so that the work counted does not depend on the order
  // of tokens.
  const double threshold = best.Threshold();
  if (std::isinf(threshold)) {
    cache.ForEachHeldOf(cluster.index,
                        [&](uint32_t id, T) { distribution.NeedLogitOf(stream.frame, id); });
    const size_t held = cache.MixHeldTokens(cluster, distribution.functions(), memory);
    for (size_t i = 0; i < held; ++i) {
      best.Offer({memory.held_ids[i], static_cast<double>(memory.held_mixed[i])});
    }
    distribution.CountTokens(static_cast<double>(held), static_cast<double>(held));
    return held;
  }
  const size_t held = cache.BoundHeldTokens(cluster, distribution.functions(), memory);
  double likely = 0;
  for (size_t i = 0; i < held; ++i) {
    if (static_cast<double>(Outward(memory.held_mixed[i])) < threshold) continue;
    const uint32_t id = memory.held_ids[i];
    distribution.NeedLogitOf(stream.frame, id);
    const T mixed =
        cache.MixedLogProbability(cluster.SoftmaxLogProbability(id), memory.held_weights[i]);
    best.Offer({id, static_cast<double>(mixed)});
    ++likely;
  }
  distribution.CountTokens(static_cast<double>(held) + likely, static_cast<double>(held) + likely);
  return held;
}

// Offers the tokens of an open cluster that can be among the best.
template <class T>
Status OfferTokens(QueriedStream<T>& stream, size_t index, BestCandidates& best) {
  Distribution<T>& distribution = *stream.distribution;
  const NeuralCacheMix<T>& cache = distribution.cache();
  QueryMemory<T>& memory = distribution.memory();
  const ClusterView<T> cluster = distribution.View(stream.frame, index);
  const size_t held = OfferHeldTokens(stream, cluster, best);
  const auto threshold = [&best] { return static_cast<T>(best.Threshold()); };
  T least = LeastLogit(cluster.terms, threshold());
  uint32_t looked_into = 0, n = 0;
  for (uint32_t begin = 0; begin < cluster.size; begin += n) {
    n = std::min<uint32_t>(kSumTile - begin % kSumTile, cluster.size - begin);
    if (cluster.tile_largest[begin / kSumTile] < least) continue;
    KINGLET_RETURN_IF_ERROR(distribution.TakeCancel());
    if (std::isinf(threshold())) n = std::min(n, kFirstTokens);
    looked_into += n;
    distribution.NeedLogits(stream.frame, index, begin, n);
    memory.places.resize(n + kPlacesMargin);
    // Tokens as probable as the threshold too: one of a lower id replaces the k-th best.
    const size_t found = distribution.functions().at_least(cluster.logits + begin, n, cluster.terms,
                                                           threshold(), memory.places.data());
    for (size_t i = 0; i < found; ++i) {
      const uint32_t id = cluster.first + begin + memory.places[i];
      if (cache.WeightOf(id) != T{0}) continue;  // offered above
      const T mixed = cache.MixedLogProbability(cluster.SoftmaxLogProbability(id), T{0});
      best.Offer({id, static_cast<double>(mixed)});
    }
    if (found > 0) least = LeastLogit(cluster.terms, threshold());
  }
  distribution.CountTokens(looked_into, 0);
  OperationTally& arithmetic = distribution.work().arithmetic;
  if (index > 0) arithmetic += {0, 2, 0};  // log p of the cluster
  // Each of these tokens, and each tile, is compared with the k-th best.
  arithmetic.others +=
      looked_into + static_cast<double>(SumTiles(cluster.size)) + static_cast<double>(held);
  return Status();
}

}  // namespace

template <class T>
Status FindTopK(std::span<QueriedStream<T>> streams, uint32_t k,
                std::span<std::vector<Candidate>> out, LogitsPlace place) {
  if (k == 0) {
    for (std::vector<Candidate>& best : out) best.clear();
    return Status();
  }
  const Plan& plan = streams.front().distribution->plan();
  // While fewer than k tokens are known, every token that the cache holds is computed.
  const LogitsPlace of_head = plan.cache ? kLogitsInBuffer : place;
  KINGLET_RETURN_IF_ERROR(Distribution<T>::OpenCluster(streams, 0, of_head));
  KINGLET_RETURN_IF_ERROR(Distribution<T>::OpenCache(streams));
  std::array<BestCandidates, kLanesTogether> best;
  for (size_t i = 0; i < streams.size(); ++i) {
    best[i] = BestCandidates(std::min(k, plan.vocabulary_size));
    KINGLET_RETURN_IF_ERROR(OfferTokens(streams[i], 0, best[i]));
  }
  // The streams that compute a tail together, their indices in `streams`, and the largest weight of
  // a token of the tail in the cache of each.
  std::array<QueriedStream<T>, kLanesTogether> opening;
  std::array<size_t, kLanesTogether> numbers{};
  std::array<T, kLanesTogether> heaviest{};
  for (size_t tail = 1; tail < plan.clusters.size(); ++tail) {
    size_t count = 0;
    for (size_t i = 0; i < streams.size(); ++i) {
      Distribution<T>& distribution = *streams[i].distribution;
      heaviest[count] = distribution.cache().HeaviestTokenOf(tail, distribution.work().arithmetic);
      if (CanSkipTail(streams[i], tail, heaviest[count], best[i])) continue;
      numbers[count] = i;
      opening[count++] = streams[i];
    }
    if (count == 0) continue;
    KINGLET_RETURN_IF_ERROR(
        Distribution<T>::OpenCluster(std::span(opening).first(count), tail, place));
    for (size_t n = 0; n < count; ++n) {
      BestCandidates& so_far = best[numbers[n]];
      if (CanSkipTokensOfTail(opening[n], tail, heaviest[n], so_far)) continue;
      KINGLET_RETURN_IF_ERROR(OfferTokens(opening[n], tail, so_far));
    }
  }
  const auto check = [&] { return streams.front().distribution->TakeCancel(); };
  for (size_t i = 0; i < streams.size(); ++i) {
    KINGLET_ASSIGN_OR_RETURN(out[i], std::move(best[i]).Sorted(check));
  }
  return Status();
}

template Status FindTopK(std::span<QueriedStream<float>>, uint32_t,
                         std::span<std::vector<Candidate>>, LogitsPlace);
template Status FindTopK(std::span<QueriedStream<double>>, uint32_t,
                         std::span<std::vector<Candidate>>, LogitsPlace);

}  // namespace kinglet

// Answers to queries about a lane's next token: its k most probable tokens (RankTokens), and the
// log-probability of one token (TokenLogProbability). The results are those of
// runtime/queries/distribution.h, bit for bit. C++17.
//
// One thread block per lane. The inputs are each cluster's normaliser and the largest logit of
// every sum tile (1,024 logits). The largest logit bounds the probability of every token of its sum
// tile, so the thread block searches the sum tiles of a cluster in the order of that bound, until
// no sum tile can contain a token better than the k-th best so far. The search skips tokens that
// the neural cache contains; they come afterwards, each with a bound of its own.
//
// No token of a tail is more probable than the tail itself, whose probability is in the head. So
// the head can be ranked first: it bounds which tails could still contain one of the k best tokens,
// and only those have to be computed.
//
// Shared memory: the memory of LaneTokens and CachedTokens, a bound for every sum tile, and the
// best tokens.
#ifndef KINGLET_KERNELS_CUDA_RANKING_H_
#define KINGLET_KERNELS_CUDA_RANKING_H_

#include <cstdint>

#include "kernels/cuda/best_tokens.h"
#include "kernels/cuda/cached_tokens.h"
#include "kernels/cuda/lane_tokens.h"
#include "kernels/ranked_tokens.h"

namespace kinglet::cuda {

// Which clusters RankTokens ranks.
enum class RankedPart : uint32_t {
  kAll,
  kHead,   // the head; writes to `tails` which tails could contain one of the k best tokens
  kTails,  // the clusters in `tails`, computed since; continues from kHead's answer
  kNeeded  // kHead and then kTails, where all clusters are computed
};

// The k most probable tokens. `looked_into` counts tokens outside the cache. A work item is a lane.
struct RankTokens {
  RankedTokensPlan plan;
  uint32_t k;  // at most RankedTokens::kMost
  RankedPart part;
  // Mapped memory (Device::AllocateMapped).
  std::byte* answers;  // [lanes] of RankedTokens::BytesFor(k) each
  uint64_t* tails;     // [lanes]: a bit for each cluster; of kHead and kTails

  KINGLET_HOST_DEVICE RankedTokens& Answer(uint32_t lane) const {
    return *reinterpret_cast<RankedTokens*>(answers + lane * RankedTokens::BytesFor(k));
  }
  KINGLET_HOST_DEVICE uint32_t WorkItems(uint32_t lanes, uint32_t) const { return lanes; }
  KINGLET_HOST_DEVICE uint64_t SharedBytes() const;
};

// The log-probability of the token that each lane asks for (Lane::asked). A work item is a lane.
struct TokenLogProbability {
  RankedTokensPlan plan;
  std::byte* answers;    // mapped memory, [lanes] of RankedTokens::BytesFor(1) each
  uint64_t also_finite;  // clusters that were computed for every lane and must be finite, too

  KINGLET_HOST_DEVICE uint32_t WorkItems(uint32_t lanes, uint32_t) const { return lanes; }
  KINGLET_HOST_DEVICE uint64_t SharedBytes() const;
};

namespace internal {

// The search for the best tokens of lane work.item. All public members but the constructor are
// block-wide.
class LaneRanking {
 public:
  KINGLET_HOST_DEVICE LaneRanking(const RankTokens& p, const Work& work, SharedMemory& shared)
      : p_(p),
        work_(work),
        tokens_(p.plan, work, shared),
        cache_(p.plan, shared),
        bounds_(shared.Take<float>(p.plan.sum_tiles)),
        of_warps_(shared.Take<RankedToken>(kMaxWarps)),
        bits_of_warps_(shared.Take<uint64_t>(kMaxWarps)),
        best_(*shared.Take<BestTokens>(1)) {}
  KINGLET_HOST_DEVICE static uint64_t Bytes(const RankedTokensPlan& plan) {
    return LaneTokens::Bytes(plan) + CachedTokens::Bytes(plan) +
           SharedMemory::Bytes<float>(plan.sum_tiles) +
           SharedMemory::Bytes<RankedToken>(kMaxWarps) + SharedMemory::Bytes<uint64_t>(kMaxWarps) +
           SharedMemory::Bytes<BestTokens>(1);
  }

  // Starts a search in these clusters (a bit each), from the best tokens of `known`, or without any
  // if it is null.
  KINGLET_HOST_DEVICE void Begin(uint64_t clusters, const RankedTokens* known) {
    tokens_.ReadTerms(clusters);
    looked_into_ = known == nullptr ? 0 : known->looked_into;
    work_.block.ForEach(known == nullptr ? 1 : RankedTokens::kMost, [&](uint64_t i) {
      if (i == 0) best_.count = known == nullptr ? 0 : known->count;
      if (known != nullptr && i < known->count) {
        best_.tokens[i] = {known->tokens[i].log_probability, known->tokens[i].id};
      }
    });
    cache_.Fill(work_, tokens_.lane());
  }
  KINGLET_HOST_DEVICE uint32_t not_finite() const { return tokens_.not_finite(); }
  KINGLET_HOST_DEVICE uint32_t head_not_finite() const { return tokens_.head_not_finite(); }
  KINGLET_HOST_DEVICE bool IsFinite(uint32_t cluster) const {
    return tokens_.terms(cluster).AreFinite();
  }

  // The tails (a bit each) that could contain one of the k best tokens, by the bounds that
  // runtime/queries/upper_bound.h uses: the tail's own log p, and for each cached token of the
  // tail that log p mixed with the token's weight, as if the token had all of the tail's
  // probability.
  KINGLET_HOST_DEVICE uint64_t TailsThatCould() const {
    const uint32_t clusters = p_.plan.cluster_count;
    return BlockUnion(
        work_.block, clusters + cache_.size(), bits_of_warps_, [&](uint32_t i) -> uint64_t {
          uint32_t cluster = i;
          float bound;
          if (i < clusters) {
            bound = tokens_.terms(i).parent + tokens_.terms(i).keep;
          } else {
            const uint32_t place = i - clusters;
            if (cache_.TokenAt(place) == CachedTokens::kNone) return 0;
            cluster = p_.plan.ClusterOf(cache_.TokenAt(place));
            bound = MixedWithCache(tokens_.terms(cluster).parent, cache_.WeightAt(place),
                                   tokens_.total(), p_.plan.cache);
          }
          if (cluster == 0 || !best_.CouldTake(Above(Above(bound)), p_.k)) return 0;
          return uint64_t{1} << cluster;
        });
  }

  // Adds the tokens of a cluster that are good enough. REQUIRES: Begin named the cluster.
  KINGLET_HOST_DEVICE void LookInto(uint32_t index) {
    LookIntoTiles(index);
    LookIntoCached(index);
  }

  KINGLET_HOST_DEVICE void Write(RankedTokens& answer) const {
    work_.block.ForEach(p_.k, [&](uint64_t i) {
      if (i == 0) {
        answer.count = best_.count;
        answer.looked_into = looked_into_;
      }
      if (i >= best_.count) return;
      answer.tokens[i] = {best_.tokens[i].id, best_.tokens[i].value};
    });
  }

 private:
  // The largest logits of a cluster's sum tiles. The head's last one may be a tail's logit, which
  // is a valid bound, too.
  KINGLET_HOST_DEVICE const float* LargestOf(const RankedCluster& cluster) const {
    return work_.At<float>(tokens_.lane(), cluster.logits.largest);
  }

  KINGLET_HOST_DEVICE void LookIntoTiles(uint32_t index) {
    const Block& block = work_.block;
    const RankedCluster& cluster = p_.plan.clusters[index];
    const RankedTerms& terms = tokens_.terms(index);
    const uint32_t tiles = LaneTokens::TilesOf(cluster);
    const float* largest = LargestOf(cluster);
    block.ForEach(tiles, [&](uint64_t i) { bounds_[i] = terms.OutsideCache(largest[i]); });
    while (true) {
      const RankedToken next = BlockBest(block, tiles, of_warps_, [&](uint32_t i) {
        return RankedToken{bounds_[i], i};
      });
      const bool ends = next.id == UINT32_MAX || !(next.value > RankedToken::None().value) ||
                        !best_.CouldTake(next.value, p_.k);
      block.Barrier();
      if (ends) return;
      const uint32_t first = next.id * kSumTile, left = cluster.size - first;
      const uint32_t size = left < kSumTile ? left : kSumTile;
      looked_into_ += size;
      float* const logits = tokens_.LogitsOf(index, first, size);
      block.ForEach(size, [&](uint64_t i) { logits[i] = terms.OutsideCache(logits[i]); });
      const uint32_t first_id = cluster.first + first;
      TakeBest(
          block, size, p_.k, of_warps_, best_,
          [&](uint32_t i) {
            return RankedToken{logits[i], first_id + i};
          },
          [&](uint32_t id) -> float& { return logits[id - first_id]; },
          [&](uint32_t id) { return cache_.Holds(id); });
      block.ForEach(1, [&](uint64_t) { bounds_[next.id] = RankedToken::None().value; });
    }
  }

  // Adds tokens that the cache contains, one thread each. The token's sum tile bounds its
  // probability; only if the bound is good enough is the token's own logit computed.
  KINGLET_HOST_DEVICE void LookIntoCached(uint32_t index) {
    const RankedCluster& cluster = p_.plan.clusters[index];
    const RankedTerms& terms = tokens_.terms(index);
    const float* largest = LargestOf(cluster);
    work_.block.ForEach(cache_.size(), [&](uint64_t i) {
      float& value = cache_.ValueAt(i);
      value = RankedToken::None().value;
      if (cache_.TokenAt(i) == CachedTokens::kNone) return;
      const uint32_t row = cache_.TokenAt(i) - cluster.first;
      if (row >= cluster.size) return;
      const float weight = cache_.WeightAt(i);
      const auto mixed = [&](float logit) {
        return MixedWithCache(terms.BeforeCache(logit), weight, tokens_.total(), p_.plan.cache);
      };
      if (!best_.CouldTake(Above(Above(mixed(largest[row / kSumTile]))), p_.k)) return;
      value = mixed(LogitOf(cluster, row));
    });
    TakeBest(
        work_.block, cache_.size(), p_.k, of_warps_, best_,
        [&](uint32_t i) {
          return RankedToken{cache_.ValueAt(i), cache_.TokenAt(i)};
        },
        [&](uint32_t id) -> float& { return cache_.ValueAt(cache_.Find(id)); },
        [](uint32_t) { return false; });
  }

  // By one thread: the logit of row `row` of the cluster.
  KINGLET_HOST_DEVICE float LogitOf(const RankedCluster& cluster, uint32_t row) const {
    const Lane& lane = tokens_.lane();
    const IntegerProduct& product = cluster.product;
    if (cluster.stored || row >= product.matrix.rows) {
      return work_.At<float>(lane, cluster.logits.x)[row];
    }
    const int16_t* codes = work_.At<int16_t>(lane, product.x.place);
    return product.finish(product.matrix.Product(row, codes, work_.ScaleOf(lane, product.x)), row);
  }

  const RankTokens& p_;
  const Work& work_;
  LaneTokens tokens_;
  CachedTokens cache_;
  float* bounds_;
  RankedToken* of_warps_;
  uint64_t* bits_of_warps_;
  BestTokens& best_;
  uint32_t looked_into_ = 0;
};

}  // namespace internal

KINGLET_HOST_DEVICE inline uint64_t RankTokens::SharedBytes() const {
  return internal::LaneRanking::Bytes(plan);
}

KINGLET_HOST_DEVICE inline void Run(const RankTokens& p, const Work& work) {
  const Block& block = work.block;
  RankedTokens& answer = p.Answer(work.item);
  SharedMemory shared(block);
  internal::LaneRanking ranking(p, work, shared);
  const bool all = p.part == RankedPart::kAll, only_head = p.part == RankedPart::kHead;
  const bool only_tails = p.part == RankedPart::kTails;
  uint64_t clusters = only_head ? 1 : p.plan.AllClusters();
  if (only_tails) clusters = p.tails[work.item];
  if (clusters == 0) return;
  ranking.Begin(clusters, only_tails ? &answer : nullptr);
  if (!only_tails) {
    const uint32_t not_finite = all ? ranking.not_finite() : ranking.head_not_finite();
    block.ForEach(1, [&](uint64_t) {
      answer.count = answer.looked_into = 0;
      answer.not_finite = not_finite;
      if (only_head) p.tails[work.item] = 0;
    });
    if (not_finite != 0 || p.k == 0) return;
  }
  for (uint32_t i = 0; i < p.plan.cluster_count; ++i) {
    if ((clusters >> i & 1) == 0) continue;
    if (i > 0 && !all) {
      // Tokens of an earlier cluster may rule this tail out. Then its logits need not be finite.
      if ((ranking.TailsThatCould() >> i & 1) == 0) continue;
      if (!ranking.IsFinite(i)) {
        block.ForEach(1, [&](uint64_t) { answer.not_finite = 1 + i; });
        return;
      }
    }
    ranking.LookInto(i);
  }
  ranking.Write(answer);
  if (!only_head) return;
  const uint64_t tails = ranking.TailsThatCould();
  block.ForEach(1, [&](uint64_t) { p.tails[work.item] = tails; });
}

KINGLET_HOST_DEVICE inline uint64_t TokenLogProbability::SharedBytes() const {
  return internal::LaneTokens::Bytes(plan) + SharedMemory::Bytes<uint64_t>(kLargestParts);
}

KINGLET_HOST_DEVICE inline void Run(const TokenLogProbability& p, const Work& work) {
  const Block& block = work.block;
  SharedMemory shared(block);
  internal::LaneTokens tokens(p.plan, work, shared);
  const uint32_t pairs = p.plan.cache.Pairs(tokens.lane().position);
  auto* const parts = shared.Take<uint64_t>(kLargestParts);
  const uint32_t id = tokens.lane().asked;
  const uint32_t index = p.plan.ClusterOf(id);
  tokens.ReadTerms(uint64_t{1} << index | p.also_finite);
  const uint32_t row = id - p.plan.clusters[index].first;
  const float* logits = tokens.LogitsOf(index, row / kTileRows * kTileRows, row % kTileRows + 1);
  const uint32_t* cached = nullptr;
  const float* weights = nullptr;
  const PairSlots slots(tokens.lane().Row(), pairs, p.plan.cache.capacity, p.plan.cache.ring);
  if (pairs > 0) {
    cached = work.At<uint32_t>(tokens.lane(), p.plan.cache.tokens);
    weights = work.At<float>(tokens.lane(), p.plan.cache.weights);
  }
  const float weight = WeightOfUnits<float>(BlockUnits(block, pairs, parts, [&](uint64_t i) {
    return cached[slots.Of(static_cast<uint32_t>(i))] == id ? UnitsOf(weights[i]) : 0;
  }));
  block.ForEach(1, [&](uint64_t) {
    const internal::RankedTerms& terms = tokens.terms(index);
    const float before = terms.BeforeCache(logits[row % kTileRows]);
    auto& answer =
        *reinterpret_cast<RankedTokens*>(p.answers + work.item * RankedTokens::BytesFor(1));
    answer.count = answer.looked_into = 1;
    answer.not_finite = tokens.not_finite();
    answer.tokens[0] = {id, weight == 0.0f ? before + terms.keep
                                           : internal::MixedWithCache(
                                                 before, weight, tokens.total(), p.plan.cache)};
  });
}

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_RANKING_H_

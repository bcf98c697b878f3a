// The tokens of a lane, as a thread block reads them to answer a query: the terms that turn logits
// into log-probabilities (rule 5 of docs/NUMERICS.md, kernels/cluster_tokens.h), and the logits,
// which are loaded if they are stored and else computed again. C++17.
//
// One thread block per lane. Shared memory: the terms of every cluster, one hidden state, and 1,024
// logits. Integer products on tensor cores are exact, so computing a logit again gives the same
// bits.
#ifndef KINGLET_KERNELS_CUDA_LANE_TOKENS_H_
#define KINGLET_KERNELS_CUDA_LANE_TOKENS_H_

#include <cstdint>

#include "kernels/cluster_of.h"
#include "kernels/cuda/product.h"
#include "kernels/cuda/row_products.h"
#include "kernels/cuda/softmax.h"
#include "kernels/ring.h"

namespace kinglet::cuda {

// A cluster of the vocabulary (kernels/plan.h, ClusterPlan).
struct RankedCluster {
  uint32_t first, size;  // tokens
  Logits logits;         // of the cluster's tokens; in the head, tails follow
  Place parent;          // a tail's own logit, in the head's logits
  bool stored;           // at logits.x; else the first logits are rows of `product`
  IntegerProduct product;
};

// The neural cache (kernels/plan.h, CachePlan), for mixing it into log-probabilities.
struct RankedCache {
  bool present;
  bool empty_is_normalised;  // without pairs, the tokens outside the cache keep all probability
  uint32_t capacity, ring;   // CacheArguments
  uint64_t first_position;
  Place tokens, weights, total;
  float keep, lambda, log_keep;  // keep = 1 - lambda

  KINGLET_HOST_DEVICE uint32_t Pairs(uint64_t position) const {
    return present ? CachePairs(position, capacity, first_position) : 0;
  }
};

// The parts of a plan that RankTokens and TokenLogProbability (ranking.h) need. `clusters` is in
// device memory, the head first.
struct RankedTokensPlan {
  const RankedCluster* clusters;
  uint32_t cluster_count;
  uint32_t sum_tiles;  // of kSumTile (1,024 logits) of all clusters' tokens together
  RankedCache cache;

  // A bit for each cluster.
  KINGLET_HOST_DEVICE uint64_t AllClusters() const {
    return ~uint64_t{0} >> (kMaxClusters - cluster_count);
  }
  KINGLET_HOST_DEVICE uint32_t ClusterOf(uint32_t id) const {
    return kinglet::ClusterOf(id, cluster_count, [this](uint32_t i) { return clusters[i].first; });
  }

  static constexpr uint32_t kMaxClusters = 64;
  static constexpr uint32_t kMaxSumTiles = 2048;  // about 2,000,000 tokens
  static constexpr uint32_t kMaxPairs = 4096;
  static constexpr uint32_t kMostColumns = 4096;  // of `product` if logits are not stored
};

namespace internal {

// ClusterTerms<float> of kernels/cluster_tokens.h.
struct RankedTerms {
  float reference, log_sum, parent, keep;

  // The log-probability before the cache is mixed in, and without a cache, as
  // kernels/ref/cluster_tokens.h computes them.
  KINGLET_HOST_DEVICE float BeforeCache(float logit) const {
    const float within = (logit - reference) - log_sum;
    return parent + (within < 0.0f ? within : 0.0f);
  }
  KINGLET_HOST_DEVICE float OutsideCache(float logit) const { return BeforeCache(logit) + keep; }
  KINGLET_HOST_DEVICE bool AreFinite() const;
};
// The log-probability of a token whose pairs in the cache have weight `weight`.
KINGLET_HOST_DEVICE inline float MixedWithCache(float log_probability, float weight, float total,
                                                const RankedCache& cache) {
  return Log(cache.keep * Exp(log_probability) + cache.lambda * (weight / total));
}
KINGLET_HOST_DEVICE inline bool IsFinite(float x) { return x - x == 0.0f; }
KINGLET_HOST_DEVICE inline bool RankedTerms::AreFinite() const {
  return IsFinite(reference) && IsFinite(log_sum);
}
// The least float above a finite one.
KINGLET_HOST_DEVICE inline float Above(float x) {
  if (x == 0.0f) return kinglet::internal::FloatFromBits(1);
  const uint32_t bits = kinglet::internal::BitsFromFloat(x);
  return kinglet::internal::FloatFromBits(x > 0.0f ? bits + 1 : bits - 1);
}

// The tokens of lane work.item. All members with a void or pointer result are block-wide.
class LaneTokens {
 public:
  KINGLET_HOST_DEVICE LaneTokens(const RankedTokensPlan& plan, const Work& work,
                                 SharedMemory& shared)
      : plan_(plan),
        work_(work),
        lane_(work.lanes[work.item]),
        terms_(shared.Take<RankedTerms>(plan.cluster_count)),
        not_finite_(shared.Take<uint32_t>(1)),
        x_(TakeVector(shared, RankedTokensPlan::kMostColumns)),
        tile_(shared.Take<float>(kSumTile)) {}
  KINGLET_HOST_DEVICE static uint64_t Bytes(const RankedTokensPlan& plan) {
    return SharedMemory::Bytes<RankedTerms>(plan.cluster_count) + SharedMemory::Bytes<uint32_t>(1) +
           BytesOfVector(RankedTokensPlan::kMostColumns) + SharedMemory::Bytes<float>(kSumTile);
  }

  // Block-wide: reads the terms of these clusters (a bit each) and of the head and the cache, and
  // whether they are all finite. Of other clusters it reads only their logit in the head.
  KINGLET_HOST_DEVICE void ReadTerms(uint64_t clusters) {
    total_ = plan_.cache.present ? *work_.At<float>(lane_, plan_.cache.total) : 0.0f;
    const bool none_kept =
        !plan_.cache.present || (total_ == 0.0f && plan_.cache.empty_is_normalised);
    const float keep = none_kept ? -0.0f : plan_.cache.log_keep;
    const float* head = work_.At<float>(lane_, plan_.clusters[0].logits.normaliser);
    work_.block.ForEach(plan_.cluster_count, [&](uint64_t i) {
      const RankedCluster& cluster = plan_.clusters[i];
      RankedTerms& terms = terms_[i];
      terms = {0.0f, 0.0f, 0.0f, keep};
      if (i > 0) terms.parent = (*work_.At<float>(lane_, cluster.parent) - head[0]) - head[1];
      if ((clusters >> i & 1) == 0) return;
      const float* normaliser = work_.At<float>(lane_, cluster.logits.normaliser);
      terms.reference = normaliser[0];
      terms.log_sum = normaliser[1];
    });
    work_.block.ForEach(1, [&](uint64_t) {
      *not_finite_ = 0;
      if (!IsFinite(total_)) *not_finite_ = 1 + plan_.cluster_count;
      for (uint32_t i = plan_.cluster_count; i-- > 0;) {
        if (!terms_[i].AreFinite()) *not_finite_ = 1 + i;
      }
      if (!IsFinite(head[0]) || !IsFinite(head[1])) *not_finite_ = 1;
    });
  }
  // 0 if all terms are finite, or 1 + the first cluster whose terms are not; 1 + cluster_count
  // stands for the cache's total.
  KINGLET_HOST_DEVICE uint32_t not_finite() const { return *not_finite_; }
  // Likewise, of the head and the cache alone.
  KINGLET_HOST_DEVICE uint32_t head_not_finite() const {
    if (!terms_[0].AreFinite()) return 1;
    return IsFinite(total_) ? 0 : 1 + plan_.cluster_count;
  }
  // The weight of all pairs in the cache.
  KINGLET_HOST_DEVICE float total() const { return total_; }
  KINGLET_HOST_DEVICE const RankedTerms& terms(uint32_t cluster) const { return terms_[cluster]; }
  KINGLET_HOST_DEVICE const Lane& lane() const { return lane_; }

  // Block-wide: the logits of tokens [first, first + n) of a cluster, in shared memory until the
  // next call. n <= 1,024; first is a multiple of 16.
  KINGLET_HOST_DEVICE float* LogitsOf(uint32_t index, uint32_t first, uint32_t n) {
    const RankedCluster& cluster = plan_.clusters[index];
    if (cluster.stored) {
      const float* logits = work_.At<float>(lane_, cluster.logits.x) + first;
      work_.block.ForEach(n, [&](uint64_t i) { tile_[i] = logits[i]; });
      return tile_;
    }
    const IntegerProduct& product = cluster.product;
    const uint32_t rows = product.matrix.rows;
    const uint32_t of_product = first < rows ? Least(n, rows - first) : 0;
    StageStreams(work_, product.x, false, work_.item, 1, 0, product.matrix.cols,
                 product.matrix.col_tiles() * kTileDepth, x_);
    MultiplyRows(work_.block, product, x_, work_.ScaleOf(lane_, product.x), first, of_product,
                 [&](uint32_t i, float logit) { tile_[i] = logit; });
    const float* stored = work_.At<float>(lane_, cluster.logits.x) + first;
    work_.block.ForEach(n - of_product,
                        [&](uint64_t i) { tile_[of_product + i] = stored[of_product + i]; });
    return tile_;
  }

  // How many sum tiles a cluster's tokens have.
  KINGLET_HOST_DEVICE static uint32_t TilesOf(const RankedCluster& cluster) {
    return static_cast<uint32_t>(SumTiles(cluster.size));
  }

 private:
  const RankedTokensPlan& plan_;
  const Work& work_;
  const Lane& lane_;
  float total_ = 0.0f;
  RankedTerms* terms_;
  uint32_t* not_finite_;
  StreamBytes x_;
  float* tile_;
};

}  // namespace internal

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_LANE_TOKENS_H_

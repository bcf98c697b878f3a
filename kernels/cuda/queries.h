// How queries about the next word are answered on the device: which steps fill the clusters'
// normalisers, and what ranks the words then. Two ways: with the clusters' own steps, which store
// all logits; or, where lanes are many, with logits that are made twice and stored nowhere
// (cluster_products.h). Both give the same bits.
#ifndef KINGLET_KERNELS_CUDA_QUERIES_H_
#define KINGLET_KERNELS_CUDA_QUERIES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/cuda/bind.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/ranking.h"
#include "kernels/plan.h"

namespace kinglet::cuda {

// Fewer lanes than these do not fill the device with products that are made twice.
inline constexpr uint32_t kLanesWorthFusing = 32;

class Queries {
 public:
  // `bound[i]` is what plan step i became; a block of the device has `max_shared_bytes`.
  static Result<Queries> Bind(const Plan& plan, const std::vector<std::vector<Step>>& bound,
                              uint64_t max_shared_bytes, Binder& binder);

  // False where the model has more clusters, words or pairs of a cache than ranking.h takes or the
  // device's blocks have shared memory for, or no clusters at all: then the host ranks.
  bool can_rank() const { return can_rank_; }
  // The steps of cluster `index` for so many lanes; of all clusters.
  StepList ClusterSteps(size_t index, uint32_t lanes) const;
  StepList AllClusterSteps(uint32_t lanes) const;
  // The plan steps that fill the neural cache's weights; none without one.
  StepRange cache_steps() const { return cache_steps_; }
  size_t clusters() const { return plan_.cluster_count; }
  size_t ClusterOf(uint32_t word) const;
  // For lanes whose head was filled by ClusterSteps of as many lanes, and each tail by those of as
  // many or fewer: what stores logits leaves also what makes them again. REQUIRES: can_rank().
  RankedWordsPlan Ranking(uint32_t lanes, bool empty_cache_is_normalised) const;
  // Most words that RankWords may be asked for.
  uint32_t max_words() const { return max_words_; }

 private:
  // One of the two ways.
  struct Way {
    std::vector<Step> steps;  // of all clusters
    const Step* steps_on_device = nullptr;
    std::vector<uint32_t> firsts;  // of cluster i among the steps, and their number
    const RankedCluster* clusters = nullptr;
  };
  const Way& WayOf(uint32_t lanes) const { return lanes < kLanesWorthFusing ? stored_ : fused_; }

  Way stored_, fused_;
  RankedWordsPlan plan_{};
  StepRange cache_steps_;
  std::vector<uint32_t> first_words_;  // of the clusters
  bool can_rank_ = false;
  uint32_t max_words_ = 0;
};

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_QUERIES_H_

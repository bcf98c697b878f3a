// Queries about the next token on the device: the steps that compute the clusters' normalisers, and
// the plan from which words are ranked (ranking.h). There are two ways. For few lanes the clusters'
// own steps store all logits. For many lanes, the steps of cluster_products.h compute the logits
// twice and store none. Both give the same bits.
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

// Fewer lanes than these do not keep the device busy with products that are computed twice.
inline constexpr uint32_t kLanesWorthFusing = 32;

class Queries {
 public:
  // `bound[i]`: the device steps of plan step i.
  static Result<Queries> Bind(const Plan& plan, const std::vector<std::vector<Step>>& bound,
                              const Device& device, Binder& binder);

  // False if the model has no clusters, or more clusters, words or cache pairs than ranking.h takes
  // or a block's shared memory holds. Then the host answers queries.
  bool can_rank() const { return can_rank_; }
  // The steps of clusters [begin, end), of one cluster, and of all clusters, for so many lanes.
  StepList ClusterSteps(size_t begin, size_t end, uint32_t lanes) const;
  StepList ClusterSteps(size_t index, uint32_t lanes) const {
    return ClusterSteps(index, index + 1, lanes);
  }
  StepList AllClusterSteps(uint32_t lanes) const { return ClusterSteps(0, clusters(), lanes); }
  // The plan steps that compute the neural cache's weights; none without a cache.
  StepRange cache_steps() const { return cache_steps_; }
  size_t clusters() const { return plan_.cluster_count; }
  size_t ClusterOf(uint32_t word) const;
  // For so many lanes. Their head must have been computed by ClusterSteps for as many lanes, each
  // tail by those for as many or fewer: steps that store the logits also leave all that is needed
  // to compute them again. REQUIRES: can_rank().
  RankedWordsPlan Ranking(uint32_t lanes, bool empty_cache_is_normalised) const;
  // The largest k of RankWords.
  uint32_t max_words() const { return max_words_; }

 private:
  // One of the two ways.
  struct Way {
    std::vector<Step> steps;  // of all clusters
    const Step* steps_on_device = nullptr;
    std::vector<uint32_t>
        firsts;  // index of cluster i's first step; at the end, the number of steps
    const RankedCluster* clusters = nullptr;
  };
  const Way& WayOf(uint32_t lanes) const { return lanes < kLanesWorthFusing ? stored_ : fused_; }

  Way stored_, fused_;
  RankedWordsPlan plan_{};
  StepRange cache_steps_;
  std::vector<uint32_t> first_words_;  // of each cluster
  bool can_rank_ = false;
  uint32_t max_words_ = 0;
};

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_QUERIES_H_

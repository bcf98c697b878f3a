// Queries about the next token on the device: the nodes that compute the clusters' normalisers, and
// the plan from which tokens are ranked (ranking.h). For few lanes the clusters' own nodes store
// all logits. For many lanes, the nodes of cluster_products.h compute the logits twice and store
// none. Few lanes may have all clusters computed by one node (cluster_logits.h). All ways give the
// same bits.
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

// With more lanes, nodes that share weights between lanes are faster than a cluster for each lane
// (DecoderStack), tails are computed for the lanes alone that need them, and their logits twice
// rather than stored, which with few lanes would not keep the device busy.
inline constexpr uint32_t kFewLanes = 64;

class Queries {
 public:
  // `bound[i]`: the device nodes of plan node i.
  static Result<Queries> Bind(const Plan& plan, const std::vector<std::vector<Node>>& bound,
                              const Device& device, Binder& binder);

  // False if the model has no clusters, or more clusters, tokens or cache pairs than ranking.h
  // supports or than fit a thread block's shared memory. Then the host answers queries.
  bool can_rank() const { return can_rank_; }
  // The nodes of clusters [begin, end), of one cluster, and of all clusters, for `lanes` lanes.
  NodeList ClusterNodes(size_t begin, size_t end, uint32_t lanes) const;
  NodeList ClusterNodes(size_t index, uint32_t lanes) const {
    return ClusterNodes(index, index + 1, lanes);
  }
  NodeList AllClusterNodes(uint32_t lanes) const { return ClusterNodes(0, clusters(), lanes); }
  // The nodes that compute all clusters and the cache at once; with `only_asked`, each lane's head
  // and the cluster of the token that the lane asks for. None for many lanes, or for clusters of
  // another form.
  NodeList NodesAtOnce(bool only_asked, uint32_t lanes) const;
  // The plan nodes that compute the neural cache's weights; empty without a cache.
  NodeRange cache_nodes() const { return cache_nodes_; }
  size_t clusters() const { return plan_.cluster_count; }
  size_t ClusterOf(uint32_t token) const;
  // The plan for ranking tokens on `lanes` lanes. Their head must have been computed by
  // ClusterNodes for the same number of lanes, each tail by ClusterNodes for that number or fewer:
  // nodes that store the logits also leave all that is needed to compute them again. With
  // `at_once`, NodesAtOnce has computed all. REQUIRES: can_rank().
  RankedTokensPlan Ranking(uint32_t lanes, bool empty_cache_is_normalised,
                           bool at_once = false) const;
  // The largest k of RankTokens.
  uint32_t max_tokens() const { return max_tokens_; }

 private:
  // One of the two ways.
  struct Way {
    std::vector<Node> nodes;  // of all clusters
    const Node* nodes_on_device = nullptr;
    std::vector<uint32_t>
        firsts;  // index of cluster i's first node; at the end, the number of nodes
    const RankedCluster* clusters = nullptr;
  };
  const Way& WayOf(uint32_t lanes) const { return lanes <= kFewLanes ? stored_ : fused_; }

  static constexpr uint32_t kNodesAtOnce = 2;
  Status BindAtOnce(const Plan& plan, const std::vector<std::vector<Node>>& bound,
                    const Device& device, Binder& binder);

  Way stored_, fused_;
  std::vector<Node> at_once_;  // of all clusters, then those with only_asked; may be empty
  const Node* at_once_on_device_ = nullptr;
  RankedTokensPlan plan_{};
  NodeRange cache_nodes_;
  std::vector<uint32_t> first_tokens_;  // of each cluster
  bool can_rank_ = false;
  uint32_t max_tokens_ = 0;
};

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_QUERIES_H_

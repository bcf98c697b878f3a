// The values of a computed cluster, as queries read them.
#ifndef KINGLET_RUNTIME_QUERIES_CLUSTER_VIEW_H_
#define KINGLET_RUNTIME_QUERIES_CLUSTER_VIEW_H_

#include <cstddef>
#include <cstdint>

#include "kernels/cluster_tokens.h"
#include "kernels/ref/cluster_tokens.h"

namespace kinglet {

// The head (cluster 0) or a tail after one token of a stream. Valid until the stream's next step.
template <class T>
struct ClusterView {
  size_t index;
  uint32_t first, size;   // its tokens are [first, first + size)
  const T* logits;        // [size]
  const T* tile_largest;  // the largest logit of each tile (LogitTiles, kernels/op.h),
                          // [SumTiles(size)]
  const T* tile_sums;     // the sum of exp(logit - reference) of each tile, [SumTiles(size)]
  T largest;              // logit
  ClusterTerms<T> terms;  // turn a logit into a log-probability

  // log p of a token of the cluster before the neural cache is mixed in.
  T SoftmaxLogProbability(uint32_t id) const {
    return ref::SoftmaxLogProbability(logits[id - first], terms);
  }
  // log p of the cluster's most probable token before the neural cache is mixed in.
  T LargestLogProbability() const { return ref::SoftmaxLogProbability(largest, terms); }
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_QUERIES_CLUSTER_VIEW_H_

// The list of all kinds of device nodes, and how a thread block runs a node of any kind. C++17.
#ifndef KINGLET_KERNELS_CUDA_OPERATIONS_H_
#define KINGLET_KERNELS_CUDA_OPERATIONS_H_

#include "kernels/cuda/attend_lanes.h"
#include "kernels/cuda/attention.h"
#include "kernels/cuda/bag.h"
#include "kernels/cuda/between_attentions.h"
#include "kernels/cuda/cache.h"
#include "kernels/cuda/cluster_logits.h"
#include "kernels/cuda/cluster_products.h"
#include "kernels/cuda/coded.h"
#include "kernels/cuda/decoder_stack.h"
#include "kernels/cuda/define.h"
#include "kernels/cuda/embedding.h"
#include "kernels/cuda/fixed_point.h"
#include "kernels/cuda/float_product.h"
#include "kernels/cuda/node.h"
#include "kernels/cuda/positions.h"
#include "kernels/cuda/product.h"
#include "kernels/cuda/ranking.h"
#include "kernels/cuda/recurrent.h"
#include "kernels/cuda/softmax.h"
#include "kernels/cuda/vectors.h"

namespace kinglet::cuda {

// Node::kind is an index into this list.
using Operations = ArgumentList<
    NormaliseVector, QuantiseVector, AddVector, AddOne, FixedPoint, IntegerProduct, RealProduct,
    SumsOfTiles, LogOfSum, SumsOfProducts, RankTokens, TokenLogProbability, AttendHead, ScoreSlots,
    WeighValues, AppendToCache, CacheProducts, CacheTotal, AddRowOfPosition, AddToHeads, CopyRow,
    GatherRow, PartProducts, SumOfParts, SumOfDots, ClearForFirstToken, LstmCell, GruCell, RnnCell,
    QrnnCell, AppendToBag, FeaturesOfBag, ScaleAndRelu, ComputeDefineRow, ScaleToUnitMeanSquare,
    ActivateVector, DecoderStack<AnyShape>, DecoderStack<BestShape>, ComputeLogits,
    NormaliseClusters, BetweenAttentions, AttendLanes>;

template <class T>
Node MakeNode(const T& arguments) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= Node::kMaxBytes);
  Node node{};
  node.kind = internal::KindIn<T>(Operations());
  node.by_lane = internal::kByLane<T>;
  node.alone_from_lanes = internal::kAloneFromLanes<T>;
  if constexpr (internal::kOfCluster<T>) node.cluster_blocks = arguments.Blocks();
  static_assert(internal::KindIn<T>(Operations()) != UINT32_MAX, "add it to Operations");
  memcpy(node.arguments, &arguments, sizeof arguments);
  return node;
}

// Whether the node is of kind T.
template <class T>
bool IsKind(const Node& node) {
  return node.kind == internal::KindIn<T>(Operations());
}

// The work items of the node for `lanes` lanes, on thread blocks of `warps` warps.
KINGLET_HOST_DEVICE inline uint32_t WorkItemsOf(const Node& node, uint32_t lanes, uint32_t warps) {
  uint32_t items = 0;
  internal::WithArguments(Operations(), node,
                          [&](const auto& p) { items = p.WorkItems(lanes, warps); });
  return items;
}

KINGLET_HOST_DEVICE inline uint64_t SharedBytesOf(const Node& node) {
  uint64_t bytes = 0;
  internal::WithArguments(Operations(), node, [&](const auto& p) { bytes = p.SharedBytes(); });
  return bytes;
}

namespace internal {
template <class T>
constexpr bool kHasOtherCodeForFewLanes =
    std::is_same_v<T, IntegerProduct> || std::is_same_v<T, AttendHead>;
// Not inlined: the compiler takes many minutes for one function with all kinds of nodes in it.
template <class T>
KINGLET_HOST_DEVICE KINGLET_NOINLINE void RunApart(const Node& node, const Work& work) {
  if constexpr (kHasOtherCodeForFewLanes<T>) {
    RunForFewLanes(ArgumentsOf<T>(node), work);
  } else {
    Run(ArgumentsOf<T>(node), work);
  }
}
template <class T>
KINGLET_HOST_DEVICE void RunIfAmongOthers(const Node& node, const Work& work) {
  constexpr uint32_t kFromLanes = kAloneFromLanes<T>;
  if constexpr (kFromLanes > 1) {
    constexpr uint32_t kKind = KindIn<T>(Operations());
    if (node.kind == kKind) RunApart<T>(node, work);
  }
}
template <class... A>
KINGLET_HOST_DEVICE void RunAmong(ArgumentList<A...>, const Node& node, const Work& work) {
  (RunIfAmongOthers<A>(node, work), ...);
}
template <class T>
void RunIfAlone(const Node& node, const Work& work) {
  if constexpr (!kOfCluster<T>) Run(ArgumentsOf<T>(node), work);
}
template <class... A>
void RunAlone(ArgumentList<A...>, const Node& node, const Work& work) {
  uint32_t kind = 0;
  ((node.kind == kind++ ? RunIfAlone<A>(node, work) : void()), ...);
}
}  // namespace internal

// Runs a work item in the kernel that has all kinds of nodes. The kernel omits kinds that always
// have a kernel of their own, and products for many lanes, since more thread blocks of a kernel of
// their own fit a multiprocessor.
KINGLET_HOST_DEVICE inline void RunItemAmongOthers(const Node& node, const Work& work) {
  internal::RunAmong(Operations(), node, work);
}

// Runs a work item on the host, of any node but those of clusters and any number of lanes.
inline void RunItem(const Node& node, const Work& work) {
  if (work.lane_count < node.alone_from_lanes) return RunItemAmongOthers(node, work);
  internal::RunAlone(Operations(), node, work);
}

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_OPERATIONS_H_

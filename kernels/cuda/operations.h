// The list of all kinds of device nodes, and what the host asks a node of any kind. C++17.
#ifndef KINGLET_KERNELS_CUDA_OPERATIONS_H_
#define KINGLET_KERNELS_CUDA_OPERATIONS_H_

#include "kernels/cuda/attend_tokens.h"
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
#include "kernels/cuda/text.h"
#include "kernels/cuda/vectors.h"

namespace kinglet::cuda {

// Node::kind is an index into this list.
using Operations =
    ArgumentList<NormaliseVector, QuantiseVector, AddVector, AddOne, FixedPoint, IntegerProduct,
                 RealProduct, SumsOfTiles, LogOfSum, SumsOfProducts<false>, SumsOfProducts<true>,
                 RankTokens, TokenLogProbability, ScoreSlots, StoreOwnRow, MoveState, WeighValues,
                 AppendToCache, CacheProducts, CacheTotal, AddRowOfPosition, AddToHeads, CopyRow,
                 GatherRow, PartProducts, SumOfParts, SumOfDots, ClearForFirstToken, LstmCell,
                 GruCell, RnnCell, QrnnCell, AppendToBag, FeaturesOfBag, ScaleAndRelu,
                 ComputeDefineRow, ScaleToUnitMeanSquare, JoinVectors, ActivateVector,
                 DecoderStack<AnyShape>, DecoderStack<BestShape>, ComputeLogits, NormaliseClusters,
                 BetweenAttentions, AttendTokens>;

template <class T>
Node MakeNode(const T& arguments) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= Node::kMaxBytes);
  Node node{};
  node.kind = internal::KindIn<T>(Operations());
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
inline uint32_t WorkItemsOf(const Node& node, uint32_t lanes, uint32_t warps) {
  uint32_t items = 0;
  internal::WithArguments(Operations(), node,
                          [&](const auto& p) { items = p.WorkItems(lanes, warps); });
  return items;
}

inline uint64_t SharedBytesOf(const Node& node) {
  uint64_t bytes = 0;
  internal::WithArguments(Operations(), node, [&](const auto& p) { bytes = p.SharedBytes(); });
  return bytes;
}

// Thread blocks of a node's launch: one for each work item, but at most `most`. A node of clusters
// has all of its own.
inline uint32_t BlocksOf(const Node& node, uint32_t lanes, uint32_t most) {
  const uint32_t items = WorkItemsOf(node, lanes, kBlockWarps);
  return node.cluster_blocks > 0 ? items : Least(items, most);
}

// Runs a work item on the host, of any node but those of clusters.
inline void RunItem(const Node& node, const Work& work) {
  internal::WithArguments(Operations(), node, [&](const auto& p) {
    if constexpr (!internal::kOfCluster<std::decay_t<decltype(p)>>) Run(p, work);
  });
}

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_OPERATIONS_H_

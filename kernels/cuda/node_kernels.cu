#include "kernels/cuda/node_kernels.h"
#include "kernels/cuda/operations.h"

namespace kinglet::cuda {
// Named, though only this file uses the namespace: nvcc names an anonymous namespace after the
// source's folder.
inline namespace node_kernels {

// At least this many thread blocks must fit the registers of a multiprocessor (__launch_bounds__),
// so that one computes while another waits for memory. On devices without the tensor core
// instruction the threads compute the products of tiles themselves (byte_product.h), which takes
// all registers.
#if KINGLET_CUDA_ON_DEVICE && __CUDA_ARCH__ < 800
constexpr uint32_t kBlocksOfSums = 1, kBlocksOfProduct = 1;
#else
constexpr uint32_t kBlocksOfSums = 2, kBlocksOfProduct = 3;
#endif
template <class Operation>
constexpr uint32_t kBlocksTogether = 3;
template <bool kHalves>
constexpr uint32_t kBlocksTogether<SumsOfProducts<kHalves>> = kBlocksOfSums;
template <>
constexpr uint32_t kBlocksTogether<IntegerProduct> = kBlocksOfProduct;
template <>
constexpr uint32_t kBlocksTogether<BetweenAttentions> = 2;
template <>
constexpr uint32_t kBlocksTogether<ComputeLogits> = 2;
template <>
constexpr uint32_t kBlocksTogether<RankTokens> = 2;
template <>
constexpr uint32_t kBlocksTogether<TokenLogProbability> = 2;

template <class Operation>
__global__ void __launch_bounds__(kBlockThreads, kBlocksTogether<Operation>)
    RunItems(const Node* node, const Lane* lanes, uint32_t lane_count) {
  const Block block(kBlockThreads);
  const auto arguments = ArgumentsOf<Operation>(*node);
  const uint32_t items = arguments.WorkItems(lane_count, kBlockWarps);
  for (uint32_t item = blockIdx.x; item < items; item += gridDim.x) {
    Run(arguments, Work{lanes, lane_count, item, block});
  }
}

// A cluster for each lane. Only devices with clusters are asked to run it.
template <class Operation>
__global__ void __launch_bounds__(kBlockThreads, 1)
    RunInClusters(const Node* node, const Lane* lanes, uint32_t) {
#if KINGLET_CUDA_HAS_CLUSTERS
  const auto arguments = ArgumentsOf<Operation>(*node);
  const uint32_t blocks = arguments.Blocks();
  const Cluster cluster = {__clusterRelativeBlockRank(), blocks, nullptr};
  typename Operation::OfBlock of_block(arguments, lanes[blockIdx.x / blocks], cluster,
                                       Block(kBlockThreads));
  of_block.Begin();
  __cluster_barrier_arrive();
  __cluster_barrier_wait();
  for (uint32_t step = 0; step < of_block.Steps(); ++step) of_block.Run(step);
  // No thread block ends while others may send it numbers.
  __cluster_barrier_arrive_relaxed();
  __cluster_barrier_wait();
#else
  static_cast<void>(node);
  static_cast<void>(lanes);
  __trap();
#endif
}

template <class Operation>
NodeKernel KernelOfKind() {
  if constexpr (internal::kOfCluster<Operation>) {
    return RunInClusters<Operation>;
  } else {
    return RunItems<Operation>;
  }
}

template <class... A>
NodeKernel FindIn(ArgumentList<A...>, uint32_t kind) {
  const NodeKernel kernels[] = {KernelOfKind<A>()...};
  return kernels[kind];
}

}  // namespace node_kernels

NodeKernel KernelOf(const Node& node) { return FindIn(Operations(), node.kind); }

}  // namespace kinglet::cuda

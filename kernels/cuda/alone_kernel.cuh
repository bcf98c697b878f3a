// The kernel of one operation (alone_kernels.h).
#ifndef KINGLET_KERNELS_CUDA_ALONE_KERNEL_CUH_
#define KINGLET_KERNELS_CUDA_ALONE_KERNEL_CUH_

#include "kernels/cuda/alone_kernels.h"

namespace kinglet::cuda {

template <class Operation>
__global__ void __launch_bounds__(kBlockThreads)
    RunAlone(const Step* step, const Lane* lanes, uint32_t lane_count) {
  extern __shared__ __align__(16) unsigned char shared_memory[];
  const Block block(kBlockThreads, reinterpret_cast<std::byte*>(shared_memory));
  const auto arguments = ArgumentsOf<Operation>(*step);
  const uint32_t units = arguments.Units(lane_count, kBlockWarps);
  for (uint32_t unit = blockIdx.x; unit < units; unit += gridDim.x) {
    Run(arguments, Work{lanes, lane_count, unit, block});
  }
}

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_ALONE_KERNEL_CUH_

// Kernels for steps that run alone (Step::alone_from_lanes), each in a source file of its own:
// compiled apart, with registers of their own. C++17, of nvcc.
#ifndef KINGLET_KERNELS_CUDA_ALONE_KERNELS_H_
#define KINGLET_KERNELS_CUDA_ALONE_KERNELS_H_

#include <cstdint>

#include "kernels/cuda/device.h"
#include "kernels/cuda/step.h"

namespace kinglet::cuda {

// The units of a step, divided among the blocks of a launch.
using AloneKernel = void (*)(const Step* step, const Lane* lanes, uint32_t lane_count);

AloneKernel IntegerProductKernel();
AloneKernel LargestOfProductsKernel();
AloneKernel ExponentialsOfProductsKernel();
AloneKernel RankWordsKernel();
AloneKernel WordLogProbabilityKernel();

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_ALONE_KERNELS_H_

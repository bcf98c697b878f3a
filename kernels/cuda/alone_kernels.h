// Kernels for steps that run alone (Step::alone_from_lanes): compiled apart from the kernel that
// runs all kinds of steps, with registers of their own. C++17.
#ifndef KINGLET_KERNELS_CUDA_ALONE_KERNELS_H_
#define KINGLET_KERNELS_CUDA_ALONE_KERNELS_H_

#include <cstdint>

#include "kernels/cuda/device.h"
#include "kernels/cuda/step.h"

namespace kinglet::cuda {

// A __global__ function: the units of a step, divided among the blocks of a launch.
using AloneKernel = void (*)(const Step* step, const Lane* lanes, uint32_t lane_count);

// Null: the step has none.
AloneKernel FindAloneKernel(const Step& step);

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_ALONE_KERNELS_H_

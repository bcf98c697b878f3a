// Kernels of a single kind of step, for steps that are a launch of their own
// (Step::alone_from_lanes). Each has as many registers as its step needs, not as many as the kernel
// that runs all kinds of steps. C++17.
#ifndef KINGLET_KERNELS_CUDA_ALONE_KERNELS_H_
#define KINGLET_KERNELS_CUDA_ALONE_KERNELS_H_

#include <cstdint>

#include "kernels/cuda/device.h"
#include "kernels/cuda/step.h"

namespace kinglet::cuda {

// A __global__ function: block b runs units b, b + grid size, ... of the step.
using AloneKernel = void (*)(const Step* step, const Lane* lanes, uint32_t lane_count);

// Null if the kind of step has no kernel of its own.
AloneKernel FindAloneKernel(const Step& step);

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_ALONE_KERNELS_H_

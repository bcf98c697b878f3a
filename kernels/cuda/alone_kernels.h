// Kernels of a single kind of node, for nodes that are a launch of their own
// (Node::alone_from_lanes). Each has as many registers as its node needs, not as many as the kernel
// that runs all kinds of nodes. C++17.
#ifndef KINGLET_KERNELS_CUDA_ALONE_KERNELS_H_
#define KINGLET_KERNELS_CUDA_ALONE_KERNELS_H_

#include <cstdint>

#include "kernels/cuda/device.h"
#include "kernels/cuda/node.h"

namespace kinglet::cuda {

// A __global__ function: thread block b runs work items b, b + grid size, ... of the node.
using AloneKernel = void (*)(const Node* node, const Lane* lanes, uint32_t lane_count);

// The kernel of the node's kind. Null if the kind has no kernel of its own.
AloneKernel FindAloneKernel(const Node& node);

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_ALONE_KERNELS_H_

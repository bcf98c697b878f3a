// The kernels of a CUDA device: one for each kind of node, so that each has as many registers as
// its node needs. C++17.
#ifndef KINGLET_KERNELS_CUDA_NODE_KERNELS_H_
#define KINGLET_KERNELS_CUDA_NODE_KERNELS_H_

#include <cstdint>

#include "kernels/cuda/node.h"

namespace kinglet::cuda {

// A __global__ function of thread blocks of kBlockThreads threads: thread block b runs work items
// b, b + grid size, ... of the node. For a node of clusters the grid has a cluster for each lane.
using NodeKernel = void (*)(const Node* node, const Lane* lanes, uint32_t lane_count);

NodeKernel KernelOf(const Node& node);

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_NODE_KERNELS_H_

// The work that a device node makes a device do: bytes of weights and products of bytes, counted
// from the node's own arguments.
#ifndef KINGLET_KERNELS_CUDA_DEMAND_H_
#define KINGLET_KERNELS_CUDA_DEMAND_H_

#include <span>

#include "kernels/backend.h"
#include "kernels/cuda/node.h"
#include "kernels/device_program.h"

namespace kinglet::cuda {

// The demand of one run of the node for these lanes. Weights count once, however many lanes and
// thread blocks read them; rows that are looked up count for each lane. A DeFINE unit's weights do
// not count, since a row from the unit's cache needs no weights. Products count as the tensor cores
// compute them: of full tiles, and of every plane.
DeviceDemand DemandOf(const Node& node, std::span<const StreamFrame> lanes);

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_DEMAND_H_

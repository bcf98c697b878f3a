// What a device has to do to run a step: from the step's own arguments, so that nothing is
// written down twice.
#ifndef KINGLET_KERNELS_CUDA_DEMAND_H_
#define KINGLET_KERNELS_CUDA_DEMAND_H_

#include <span>

#include "kernels/backend.h"
#include "kernels/cuda/step.h"
#include "kernels/device_program.h"

namespace kinglet::cuda {

// One run of the step for these lanes. Weights count once, however many lanes and blocks read them,
// but rows that are looked up count for each lane. A DeFINE unit's weights do not count, for a row
// that is in its cache needs none of them. Products are those that are made: of whole tiles and of
// every plane.
DeviceDemand DemandOf(const Step& step, std::span<const StreamFrame> lanes);

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_DEMAND_H_

// The machine's CUDA device. Only in builds with the CUDA toolkit. C++17.
#ifndef KINGLET_KERNELS_CUDA_CUDA_DEVICE_H_
#define KINGLET_KERNELS_CUDA_CUDA_DEVICE_H_

#include <memory>

#include "kernels/cuda/device.h"

namespace kinglet::cuda {

// The machine's first CUDA device. KINGLET_UNSUPPORTED, in one line: no driver, a driver too old
// for this build, no device, or a device too old for the code in this build; or kNodeByNodeVariable
// has another value than 0 or 1.
Result<std::shared_ptr<Device>> FirstCudaDevice();

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_CUDA_DEVICE_H_

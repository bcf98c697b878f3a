// The backend `cuda`: plans on the machine's CUDA device, in builds with the CUDA toolkit.
#ifndef KINGLET_KERNELS_CUDA_BACKEND_H_
#define KINGLET_KERNELS_CUDA_BACKEND_H_

#include <memory>
#include <string>

#include "kernels/cuda/device.h"
#include "kernels/device_program.h"

namespace kinglet::cuda {

// KINGLET_UNSUPPORTED, in one line: a build without CUDA, or what FirstCudaDevice says.
Result<std::string> DeviceName();
// On the machine's device. The layout outlives the program.
DeviceBinding Bind(const Plan& plan, const BufferLayout& layout, const ReleaseBytes& release);
// On any device of this directory.
DeviceBinding BindTo(const std::shared_ptr<Device>& device, const Plan& plan,
                     const BufferLayout& layout, const ReleaseBytes& release);

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_BACKEND_H_

// The backend `cuda`: runs plans on the machine's CUDA device, in builds with the CUDA toolkit.
#ifndef KINGLET_KERNELS_CUDA_BACKEND_H_
#define KINGLET_KERNELS_CUDA_BACKEND_H_

#include <memory>
#include <string>

#include "kernels/cuda/device.h"
#include "kernels/device_program.h"

namespace kinglet::cuda {

// The name of the machine's device. KINGLET_UNSUPPORTED, in one line: this build has no CUDA, or
// the reason that FirstCudaDevice gives.
Result<std::string> DeviceName();
// Binds a plan to the machine's device. The layout outlives the program.
DeviceBinding Bind(const Plan& plan, const BufferLayout& layout, const ReleaseBytes& release);
// Binds a plan to `device`, which may be emulated.
DeviceBinding BindTo(const std::shared_ptr<Device>& device, const Plan& plan,
                     const BufferLayout& layout, const ReleaseBytes& release);

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_BACKEND_H_

#include "kernels/cuda/backend.h"

#if defined(KINGLET_HAVE_CUDA)
#include "kernels/cuda/cuda_device.h"
#endif

namespace kinglet::cuda {

#if defined(KINGLET_HAVE_CUDA)

Result<std::string> DeviceName() {
  KINGLET_ASSIGN_OR_RETURN(const std::shared_ptr<Device> device, FirstCudaDevice());
  return device->name();
}

DeviceBinding Bind(const Plan& plan, const BufferLayout& layout, const ReleaseBytes& release) {
  KINGLET_ASSIGN_OR_RETURN(const std::shared_ptr<Device> device, FirstCudaDevice());
  return BindTo(device, plan, layout, release);
}

#else

namespace {

Status Absent() {
  return Status::Refusal(KINGLET_UNSUPPORTED, "backend", "cuda", "a build with CUDA",
                         "one without");
}

}  // namespace

Result<std::string> DeviceName() { return Absent(); }
DeviceBinding Bind(const Plan&, const BufferLayout&, const ReleaseBytes&) { return Absent(); }

#endif

}  // namespace kinglet::cuda

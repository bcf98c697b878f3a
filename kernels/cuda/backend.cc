#include "kernels/cuda/backend.h"

#include "kernels/cuda/lanes.h"
#if defined(KINGLET_HAVE_CUDA)
#include "kernels/cuda/cuda_device.h"
#endif

namespace kinglet::cuda {
namespace {

Result<std::shared_ptr<Device>> MachineDevice() {
#if defined(KINGLET_HAVE_CUDA)
  return FirstCudaDevice();
#else
  return Status::Refusal(KINGLET_UNSUPPORTED, "backend", "cuda", "a build with CUDA",
                         "one without");
#endif
}

}  // namespace

Result<std::string> DeviceName() {
  KINGLET_ASSIGN_OR_RETURN(const std::shared_ptr<Device> device, MachineDevice());
  return device->name();
}

DeviceBinding Bind(const Plan& plan, const BufferLayout& layout, const ReleaseBytes& release) {
  KINGLET_ASSIGN_OR_RETURN(const std::shared_ptr<Device> device, MachineDevice());
  return BindTo(device, plan, layout, release);
}

DeviceBinding BindTo(const std::shared_ptr<Device>& device, const Plan& plan,
                     const BufferLayout& layout, const ReleaseBytes& release) {
  KINGLET_ASSIGN_OR_RETURN(std::shared_ptr<const Program> program,
                           Program::Bind(plan, layout, device, release));
  return std::shared_ptr<const DeviceProgram>(
      std::make_shared<BoundPlan>(std::move(program), plan, layout));
}

}  // namespace kinglet::cuda

#include "kernels/cuda/device.h"

#include <string_view>

namespace kinglet::cuda {

Result<bool> AsksForNodeByNode(const char* value) {
  const std::string_view text = value == nullptr ? "" : value;
  if (text == "1") return true;
  if (text.empty() || text == "0") return false;
  return Status::Refusal(KINGLET_UNSUPPORTED, "cuda", kNodeByNodeVariable, "0 or 1",
                         "\"" + std::string(text) + "\"");
}

Result<DeviceMemory> DeviceMemory::Allocate(const std::shared_ptr<Device>& device, size_t bytes) {
  DeviceMemory memory;
  KINGLET_ASSIGN_OR_RETURN(memory.memory_, device->Allocate(bytes));
  memory.device_ = device;
  return memory;
}

Result<DeviceMemory> DeviceMemory::AllocateMapped(const std::shared_ptr<Device>& device,
                                                  size_t bytes) {
  DeviceMemory memory;
  KINGLET_ASSIGN_OR_RETURN(memory.memory_, device->AllocateMapped(bytes));
  memory.device_ = device;
  memory.is_mapped_ = true;
  return memory;
}

}  // namespace kinglet::cuda

#include "kernels/cuda/device.h"

#include <algorithm>

#include "kernels/cuda/operations.h"

namespace kinglet::cuda {

std::vector<Launch> PlanLaunches(const NodeList& list, uint32_t lanes, uint32_t max_blocks) {
  std::vector<Launch> launches;
  bool joining = false;  // the last launch has few thread blocks, and the next node may join it
  for (uint32_t i = 0; i < list.count; ++i) {
    const uint32_t items = WorkItemsOf(list.nodes[i], lanes, kBlockWarps);
    const bool alone = lanes >= list.nodes[i].alone_from_lanes;
    if (list.nodes[i].cluster_blocks > 0) {
      launches.push_back({i, i + 1, items});
      joining = false;
    } else if (items > kFewWorkItems || alone) {
      launches.push_back({i, i + 1, std::min(items, max_blocks)});
      joining = false;
    } else if (joining) {
      launches.back().end = i + 1;
    } else {
      launches.push_back({i, i + 1, std::min(kFewBlocks, max_blocks)});
      joining = true;
    }
  }
  return launches;
}

Result<DeviceMemory> DeviceMemory::Allocate(const std::shared_ptr<Device>& device, size_t bytes) {
  DeviceMemory memory;
  KINGLET_ASSIGN_OR_RETURN(memory.memory_, device->Allocate(bytes));
  memory.device_ = device;
  return memory;
}

}  // namespace kinglet::cuda

// A device that the host emulates: the GPU's kernels, thread blocks and launches, one thread after
// the other. The emulation computes what a GPU computes. It shows nothing about a GPU's speed,
// memory model or tensor cores.
#ifndef KINGLET_KERNELS_CUDA_EMULATED_DEVICE_H_
#define KINGLET_KERNELS_CUDA_EMULATED_DEVICE_H_

#include <cstdint>
#include <memory>

#include "kernels/cuda/device.h"

namespace kinglet::cuda {

struct Emulation {
  uint32_t max_blocks = 5;  // of a launch
  // The order of threads and thread blocks between two barriers. Results must not depend on it.
  Order order = Order::kForward;
  uint64_t memory_bytes = uint64_t{1} << 40;  // that may be allocated
  uint64_t shared_bytes = 232448;             // of a thread block, as with compute capability 9.0
  DevicePeaks peaks = {};                     // that the device reports
  bool has_clusters = true;                   // as with compute capability 9.0
  bool has_exact_halves = true;
  uint32_t text_tokens = 24;  // Device::TextTokens
  bool is_node_by_node = false;
};

std::shared_ptr<Device> EmulatedDevice(const Emulation& emulation = {});

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_EMULATED_DEVICE_H_

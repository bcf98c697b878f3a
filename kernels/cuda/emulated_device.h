// The host in a device's place: the same kernels, blocks and launches, one thread after the other.
// What it computes is what a device computes; it proves nothing about a device's speed, its memory
// model or its tensor cores.
#ifndef KINGLET_KERNELS_CUDA_EMULATED_DEVICE_H_
#define KINGLET_KERNELS_CUDA_EMULATED_DEVICE_H_

#include <cstdint>
#include <memory>

#include "kernels/cuda/device.h"

namespace kinglet::cuda {

struct Emulation {
  uint32_t max_blocks = 5;  // of a launch
  // Of the threads of a section, and of the blocks between two waits: any order gives the same.
  Order order = Order::kForward;
  uint64_t memory_bytes = uint64_t{1} << 40;  // that may be allocated
  uint64_t shared_bytes = 232448;             // of a block: compute capability 9.0's
  DevicePeaks peaks = {};                     // as if
};

std::shared_ptr<Device> EmulatedDevice(const Emulation& emulation = {});

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_EMULATED_DEVICE_H_

// Device backends for machines without a device: the CUDA kernels on the emulated device, and the
// reference kernels behind a pretended device, whose memory only the device interface reaches and
// which can be told to fail.
#ifndef KINGLET_TESTS_SUPPORT_DEVICE_BACKENDS_H_
#define KINGLET_TESTS_SUPPORT_DEVICE_BACKENDS_H_

#include <cstdint>
#include <memory>

#include "kernels/backend.h"
#include "kernels/cuda/emulated_device.h"

namespace kinglet {

// For ModelOptions::own_backend.
Backend EmulatedCuda(const cuda::Emulation& emulation = {});

struct PretendedDevice {
  uint64_t memory_bytes = uint64_t{1} << 30;
  // How many more calls succeed; all later ones fail. Tests change it as they run.
  uint64_t calls_left = UINT64_MAX;
};
// REQUIRES: `device` outlives models and sessions.
Backend PretendedBackend(PretendedDevice& device);

}  // namespace kinglet

#endif  // KINGLET_TESTS_SUPPORT_DEVICE_BACKENDS_H_

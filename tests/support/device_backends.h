// Devices for tests that need none: CUDA kernels on the emulated device, and reference kernels
// behind memory that only the device's interface reaches, which can be told to fail.
#ifndef KINGLET_TESTS_SUPPORT_DEVICE_BACKENDS_H_
#define KINGLET_TESTS_SUPPORT_DEVICE_BACKENDS_H_

#include <cstdint>
#include <memory>

#include "kernels/backend.h"
#include "kernels/cuda/emulated_device.h"

namespace kinglet {

// ModelOptions::own_backend.
Backend EmulatedCuda(const cuda::Emulation& emulation = {});

struct PretendedDevice {
  uint64_t memory_bytes = uint64_t{1} << 30;
  // Calls that succeed; all later ones fail. Set while tests run.
  uint64_t calls_left = UINT64_MAX;
};
// `device` outlives models and sessions.
Backend PretendedBackend(PretendedDevice& device);

}  // namespace kinglet

#endif  // KINGLET_TESTS_SUPPORT_DEVICE_BACKENDS_H_

// Backends with a device for tests on machines without one: CUDA kernels on the emulated device,
// whose lanes begin with rubbish in their state; and a pretended device, which runs reference
// kernels on memory of its own and can be told to fail.
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
  // Number of calls that succeed from now on; all later calls fail. A test may set it at any time.
  uint64_t calls_left = UINT64_MAX;
};
// `device` outlives models and sessions that use the backend.
Backend PretendedBackend(PretendedDevice& device);

}  // namespace kinglet

#endif  // KINGLET_TESTS_SUPPORT_DEVICE_BACKENDS_H_

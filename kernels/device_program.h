// A plan on a device that has memory of its own. The host sees the memory of the device's lanes
// only by asking for it: queries work on copies of what their steps left (Frame::scratch and
// Frame::state), so that everything that answers them is the same for every backend.
#ifndef KINGLET_KERNELS_DEVICE_PROGRAM_H_
#define KINGLET_KERNELS_DEVICE_PROGRAM_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "kernels/backend.h"
#include "kernels/plan.h"
#include "kinglet/status.h"

namespace kinglet {

// What the device has been asked to do.
struct DeviceWork {
  uint64_t launches = 0;
  uint64_t bytes_to_device = 0, bytes_to_host = 0;

  DeviceWork operator-(const DeviceWork& before) const {
    return {launches - before.launches, bytes_to_device - before.bytes_to_device,
            bytes_to_host - before.bytes_to_host};
  }
  DeviceWork& operator+=(const DeviceWork& more) {
    launches += more.launches;
    bytes_to_device += more.bytes_to_device;
    bytes_to_host += more.bytes_to_host;
    return *this;
  }
};

// The memory of a session's lanes on a device, all zeros at first, and the queue of what is done
// with it, in order. Belongs to one thread at a time. Calls that bring nothing back may return
// before the work is done. An error of the device is for good: its memory holds half of something,
// and every later call returns that error again. REQUIRES: lanes below the count, ranges of the
// plan and of its state.
class DeviceLanes {
 public:
  virtual ~DeviceLanes() = default;

  // Runs the steps on the memory of lanes Frame::lane, none twice; the frames' own is not touched.
  virtual Status Run(StepRange range, std::span<const Frame> frames) = 0;
  // Copies buffers from the lanes to the frames' own memory.
  virtual Status Fetch(std::span<const Frame> frames, std::span<const BufferId> buffers) = 0;

  // Bytes of a lane's state from `offset` on.
  virtual Status ReadState(uint32_t lane, uint64_t offset, std::span<std::byte> to) = 0;
  virtual Status WriteState(uint32_t lane, uint64_t offset, std::span<const std::byte> from) = 0;
  virtual Status ClearState(uint32_t lane, uint64_t offset, uint64_t bytes) = 0;
  // All of it, to another lane.
  virtual Status CopyState(uint32_t from, uint32_t to) = 0;

  // Until everything is done.
  virtual Status Wait() = 0;
  virtual DeviceWork work() const = 0;
};

// A plan bound to a device, its weights in the device's memory. Immutable; shared by any number of
// threads.
class DeviceProgram {
 public:
  virtual ~DeviceProgram() = default;
  virtual const std::string& device_name() const = 0;
  virtual uint64_t weight_bytes() const = 0;
  // Of the device's memory: what each lane takes, and what is free now.
  virtual uint64_t BytesPerLane() const = 0;
  virtual uint64_t FreeBytes() const = 0;
  // KINGLET_OUT_OF_MEMORY. Throws std::bad_alloc.
  virtual Result<std::unique_ptr<DeviceLanes>> CreateLanes(uint32_t count) const = 0;
};

}  // namespace kinglet

#endif  // KINGLET_KERNELS_DEVICE_PROGRAM_H_

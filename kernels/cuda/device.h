// A device as the rest of this directory uses it: memory, and queues that run steps. Two there are:
// a CUDA device (cuda_device.h), and the host emulating one (emulated_device.h). C++17.
#ifndef KINGLET_KERNELS_CUDA_DEVICE_H_
#define KINGLET_KERNELS_CUDA_DEVICE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cuda/step.h"
#include "kernels/device_peaks.h"
#include "kinglet/status.h"

namespace kinglet::cuda {

// Threads of every block.
inline constexpr uint32_t kBlockThreads = 256;
inline constexpr uint32_t kBlockWarps = kBlockThreads / kWarpThreads;

// Steps one after the other, in the host's memory and in the device's. Not owned.
struct StepList {
  const Step* steps = nullptr;
  uint32_t count = 0;
  const Step* on_device = nullptr;
  // Likely to be asked for again, for as many lanes: worth remembering how it was launched. Its
  // memory then stays where it is for as long as the queue lives.
  bool may_repeat = true;
};

// Steps begin .. end - 1 of a list by one launch of so many blocks. Of one step: its units divided
// among the blocks. Of several: the blocks wait for each other between any two.
struct Launch {
  uint32_t begin, end;
  uint32_t blocks;
};
// Few blocks wait for each other fast, but many read memory fast: steps of few units share a launch
// of kFewBlocks, and any other, and one for many lanes that
// has a kernel of its own, is one of its own with up to `max_blocks`.
inline constexpr uint32_t kFewBlocks = 16;
inline constexpr uint32_t kFewUnits = 64;
std::vector<Launch> PlanLaunches(const StepList& list, uint32_t lanes, uint32_t max_blocks);

// What has been asked of a queue since it was made.
struct QueueWork {
  uint64_t launches = 0;
  uint64_t bytes_to_device = 0, bytes_to_host = 0;
};

// Runs what it is given in order. Belongs to one thread at a time. Everything but Wait and Download
// may return before it is done; an error of it is then the next call's.
class Queue {
 public:
  virtual ~Queue() = default;
  // `from` may change once the call has returned.
  virtual Status Upload(std::byte* to, const void* from, size_t bytes) = 0;
  // Waits for all that was given before.
  virtual Status Download(void* to, const std::byte* from, size_t bytes) = 0;
  virtual Status Copy(std::byte* to, const std::byte* from, size_t bytes) = 0;
  virtual Status Zero(std::byte* to, size_t bytes) = 0;
  // `lanes` is the device's memory.
  virtual Status Run(const StepList& list, const Lane* lanes, uint32_t lane_count) = 0;
  virtual Status Wait() = 0;
  const QueueWork& work() const { return work_; }

 protected:
  QueueWork work_;
};

// What lanes may have of a device's free memory. The rest is for kernels, which are loaded when
// they are first run, and for graphs: after the last byte is given away the first step would fail.
inline constexpr uint64_t kReservedBytes = uint64_t{256} << 20;
constexpr uint64_t WithoutReserve(uint64_t free_bytes) {
  return free_bytes > kReservedBytes ? free_bytes - kReservedBytes : 0;
}

// Shared by any number of threads.
class Device {
 public:
  virtual ~Device() = default;
  virtual const std::string& name() const = 0;
  // Memory that lanes may have.
  virtual uint64_t FreeBytes() const = 0;
  // Most of it that a block may ask for.
  virtual uint64_t SharedBytesOfBlock() const = 0;
  virtual DevicePeaks peaks() const { return {}; }
  // Aligned to 256 bytes. KINGLET_OUT_OF_MEMORY.
  virtual Result<std::byte*> Allocate(size_t bytes) = 0;
  virtual void Free(std::byte* memory) = 0;
  virtual Result<std::unique_ptr<Queue>> CreateQueue() = 0;
};

// Memory of a device, freed with its owner.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  static Result<DeviceMemory> Allocate(const std::shared_ptr<Device>& device, size_t bytes);
  DeviceMemory(DeviceMemory&& other) noexcept { *this = std::move(other); }
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(memory_, other.memory_);
    return *this;
  }
  ~DeviceMemory() {
    if (memory_ != nullptr) device_->Free(memory_);
  }
  std::byte* data() const { return memory_; }

 private:
  std::shared_ptr<Device> device_;
  std::byte* memory_ = nullptr;
};

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_DEVICE_H_

// A device as the rest of this folder uses it: memory, and queues that run device nodes. The two
// implementations are a CUDA device (cuda_device.h), and the host emulating one
// (emulated_device.h). C++17.
#ifndef KINGLET_KERNELS_CUDA_DEVICE_H_
#define KINGLET_KERNELS_CUDA_DEVICE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "kernels/cuda/node.h"
#include "kernels/device_peaks.h"
#include "kinglet/status.h"

namespace kinglet::cuda {

// Device nodes that run one after the other: the same array in host and device memory. Not owned.
struct NodeList {
  const Node* nodes = nullptr;
  uint32_t count = 0;
  const Node* on_device = nullptr;
  // Whether the list may run again for the same lanes, so that the queue should remember its
  // launches. The list's memory must then stay where it is for as long as the queue lives.
  bool may_repeat = true;
};

// An environment variable: with 1, plan nodes are not joined into larger device nodes, so that both
// can be timed and checked on one device. Results do not depend on it.
inline constexpr const char* kNodeByNodeVariable = "KINGLET_CUDA_NODE_BY_NODE";
// Whether the variable's value asks for it: "1" does, null, "" and "0" do not. KINGLET_UNSUPPORTED
// for any other.
Result<bool> AsksForNodeByNode(const char* value);

// The work that a queue has been given since it was created.
struct QueueWork {
  uint64_t launches = 0;
  uint64_t bytes_to_device = 0, bytes_to_host = 0;
};

// Runs its work in order, like a CUDA stream. Belongs to one thread at a time. All calls but Wait
// and Download may return before the work is done; a later call then returns its error.
class Queue {
 public:
  virtual ~Queue() = default;
  // `from` may change as soon as the call has returned.
  virtual Status Upload(std::byte* to, const void* from, size_t bytes) = 0;
  // Waits for all earlier work, then copies.
  virtual Status Download(void* to, const std::byte* from, size_t bytes) = 0;
  virtual Status Copy(std::byte* to, const std::byte* from, size_t bytes) = 0;
  virtual Status Zero(std::byte* to, size_t bytes) = 0;
  // `lanes`: [lane_count] in device memory.
  virtual Status Run(const NodeList& list, const Lane* lanes, uint32_t lane_count) = 0;
  virtual Status Wait() = 0;
  const QueueWork& work() const { return work_; }

 protected:
  QueueWork work_;
};

// Device memory that is kept free of lanes. CUDA needs some for kernels, which it loads when they
// first run, and for graphs: without it the first node would fail.
inline constexpr uint64_t kReservedBytes = uint64_t{256} << 20;
constexpr uint64_t WithoutReserve(uint64_t free_bytes) {
  return free_bytes > kReservedBytes ? free_bytes - kReservedBytes : 0;
}

// Shared by any number of threads.
class Device {
 public:
  virtual ~Device() = default;
  virtual const std::string& name() const = 0;
  // Free memory, less kReservedBytes.
  virtual uint64_t FreeBytes() const = 0;
  // The most shared memory that a thread block may have.
  virtual uint64_t SharedBytesOfBlock() const = 0;
  // Whether plan nodes are not joined into larger device nodes (kNodeByNodeVariable).
  virtual bool IsNodeByNode() const { return false; }
  // Given tokens that run together.
  virtual uint32_t TextTokens() const { return 1024; }
  // Whether half-precision tensor cores add exactly (half_product.h).
  virtual bool HasExactHalves() const = 0;
  // Whether the device can run this node of a cluster.
  virtual bool HasClustersFor(const Node& node) const = 0;
  virtual DevicePeaks peaks() const { return {}; }
  // Aligned to 256 bytes. KINGLET_OUT_OF_MEMORY.
  virtual Result<std::byte*> Allocate(size_t bytes) = 0;
  virtual void Free(std::byte* memory) = 0;
  // Host memory that nodes reach at the address that the host has for it. The host reads what nodes
  // stored after Queue::Wait. KINGLET_OUT_OF_MEMORY.
  virtual Result<std::byte*> AllocateMapped(size_t bytes) = 0;
  virtual void FreeMapped(std::byte* memory) = 0;
  virtual Result<std::unique_ptr<Queue>> CreateQueue() = 0;
};

// Memory of a device that this object owns.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  static Result<DeviceMemory> Allocate(const std::shared_ptr<Device>& device, size_t bytes);
  static Result<DeviceMemory> AllocateMapped(const std::shared_ptr<Device>& device, size_t bytes);
  DeviceMemory(DeviceMemory&& other) noexcept { *this = std::move(other); }
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(memory_, other.memory_);
    std::swap(is_mapped_, other.is_mapped_);
    return *this;
  }
  ~DeviceMemory() {
    if (memory_ == nullptr) return;
    if (is_mapped_) {
      device_->FreeMapped(memory_);
    } else {
      device_->Free(memory_);
    }
  }
  std::byte* data() const { return memory_; }

 private:
  std::shared_ptr<Device> device_;
  std::byte* memory_ = nullptr;
  bool is_mapped_ = false;
};

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_DEVICE_H_

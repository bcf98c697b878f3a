#include "kernels/cuda/emulated_device.h"

#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include "kernels/cuda/operations.h"

namespace kinglet::cuda {
namespace {

class EmulatedQueue : public Queue {
 public:
  explicit EmulatedQueue(const Emulation& emulation) : emulation_(emulation) {}

  Status Upload(std::byte* to, const void* from, size_t bytes) override {
    work_.bytes_to_device += bytes;
    return CopyBytes(to, from, bytes);
  }
  Status Download(void* to, const std::byte* from, size_t bytes) override {
    work_.bytes_to_host += bytes;
    return CopyBytes(to, from, bytes);
  }
  Status Copy(std::byte* to, const std::byte* from, size_t bytes) override {
    return CopyBytes(to, from, bytes);
  }
  Status Zero(std::byte* to, size_t bytes) override {
    if (bytes > 0) std::memset(to, 0, bytes);
    return Status();
  }
  Status Run(const NodeList& list, const Lane* lanes, uint32_t lane_count) override {
    for (const Launch& launch : PlanLaunches(list, lane_count, emulation_.max_blocks)) {
      ++work_.launches;
      // Between two barriers a thread block may be any number of nodes ahead of another.
      for (uint32_t i = launch.begin; i < launch.end;) {
        uint32_t end = i + 1;
        while (end < launch.end && !NeedsBarrier(list.nodes[end - 1], list.nodes[end])) ++end;
        RunBetweenBarriers(list.on_device + i, end - i, launch.blocks, {lanes, lane_count});
        i = end;
      }
    }
    return Status();
  }
  Status Wait() override { return Status(); }

 private:
  static Status CopyBytes(void* to, const void* from, size_t bytes) {
    if (bytes > 0) std::memcpy(to, from, bytes);
    return Status();
  }

  struct LaneArray {
    const Lane* lanes;
    uint32_t count;
  };
  void RunBetweenBarriers(const Node* nodes, uint32_t count, uint32_t blocks,
                          const LaneArray& lanes) const {
    for (uint32_t b = 0; b < blocks; ++b) {
      const uint32_t block = emulation_.order == Order::kForward ? b : blocks - 1 - b;
      for (uint32_t i = 0; i < count; ++i) RunNode(nodes[i], block, blocks, lanes);
    }
  }
  // The work items of one thread block.
  void RunNode(const Node& node, uint32_t first, uint32_t blocks, const LaneArray& lanes) const {
    // Allocated for each node, so that a sanitizer sees accesses beyond it, and filled with a
    // pattern, so that no node finds the results of an earlier node.
    std::vector<Aligned16> shared(SharedBytesOf(node) / sizeof(Aligned16) + 1);
    std::memset(shared.data(), 0xA5, shared.size() * sizeof(Aligned16));
    const Block block(kBlockThreads, reinterpret_cast<std::byte*>(shared.data()), emulation_.order);
    const uint32_t items = WorkItemsOf(node, lanes.count, kBlockWarps);
    for (uint32_t item = first; item < items; item += blocks) {
      RunItem(node, Work{lanes.lanes, lanes.count, item, block});
    }
  }

  struct alignas(16) Aligned16 {
    std::byte bytes[16];
  };
  Emulation emulation_;
};

class Emulated : public Device {
 public:
  explicit Emulated(const Emulation& emulation) : emulation_(emulation) {}

  const std::string& name() const override {
    static const std::string kName = "emulated on the host: not proven on a device";
    return kName;
  }
  uint64_t FreeBytes() const override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return emulation_.memory_bytes - used_;
  }
  uint64_t SharedBytesOfBlock() const override { return emulation_.shared_bytes; }
  uint32_t EnoughWorkItems() const override { return emulation_.enough_work_items; }
  DevicePeaks peaks() const override { return emulation_.peaks; }
  Result<std::byte*> Allocate(size_t bytes) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::unique_ptr<std::byte, Release> memory;
    if (bytes <= emulation_.memory_bytes - used_) {
      memory.reset(static_cast<std::byte*>(::operator new(bytes, kAlignment, std::nothrow)));
    }
    if (memory == nullptr) {
      return Status::Refusal(KINGLET_OUT_OF_MEMORY, "cuda", "device memory",
                             std::to_string(bytes) + " bytes",
                             std::to_string(emulation_.memory_bytes - used_) + " free");
    }
    sizes_[memory.get()] = bytes;
    used_ += bytes;
    return memory.release();
  }
  void Free(std::byte* memory) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    used_ -= sizes_[memory];
    sizes_.erase(memory);
    Release()(memory);
  }
  Result<std::unique_ptr<Queue>> CreateQueue() override {
    return std::unique_ptr<Queue>(std::make_unique<EmulatedQueue>(emulation_));
  }

 private:
  static constexpr std::align_val_t kAlignment{256};
  struct Release {
    void operator()(std::byte* memory) const { ::operator delete(memory, kAlignment); }
  };
  Emulation emulation_;
  mutable std::mutex mutex_;
  uint64_t used_ = 0;
  std::map<void*, size_t> sizes_;
};

}  // namespace

std::shared_ptr<Device> EmulatedDevice(const Emulation& emulation) {
  return std::make_shared<Emulated>(emulation);
}

}  // namespace kinglet::cuda

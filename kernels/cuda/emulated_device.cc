#include "kernels/cuda/emulated_device.h"

#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <type_traits>
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
    for (uint32_t i = 0; i < list.count; ++i) {
      const LaneArray all = {lanes, lane_count};
      ++work_.launches;
      if (list.nodes[i].cluster_blocks > 0) {
        RunClusters(list.on_device[i], all);
      } else {
        RunBlocks(list.on_device[i], all);
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
  void RunBlocks(const Node& node, const LaneArray& lanes) const {
    const uint32_t blocks = BlocksOf(node, lanes.count, emulation_.max_blocks);
    for (uint32_t b = 0; b < blocks; ++b) {
      RunBlock(node, emulation_.order == Order::kForward ? b : blocks - 1 - b, blocks, lanes);
    }
  }
  // A cluster for each lane.
  void RunClusters(const Node& node, const LaneArray& lanes) const {
    internal::WithArguments(Operations(), node, [&](const auto& p) {
      if constexpr (internal::kOfCluster<std::decay_t<decltype(p)>>) {
        for (uint32_t i = 0; i < lanes.count; ++i) RunCluster(p, lanes.lanes[i]);
      }
    });
  }
  template <class T>
  void RunCluster(const T& p, const Lane& lane) const {
    const uint32_t count = p.Blocks();
    std::vector<SharedOfBlock> memory;
    std::vector<std::byte*> addresses;
    for (uint32_t i = 0; i < count; ++i) {
      memory.push_back(MakeShared(p.SharedBytes()));
      addresses.push_back(reinterpret_cast<std::byte*>(memory.back().data()));
    }
    std::vector<std::unique_ptr<typename T::OfBlock>> blocks;
    for (uint32_t rank = 0; rank < count; ++rank) {
      blocks.push_back(std::make_unique<typename T::OfBlock>(
          p, lane, Cluster{rank, count, addresses.data()},
          Block(kBlockThreads, addresses[rank], emulation_.order)));
    }
    const auto each = [&](const auto& call) {
      for (uint32_t b = 0; b < count; ++b) {
        call(*blocks[emulation_.order == Order::kForward ? b : count - 1 - b]);
      }
    };
    each([](auto& block) { block.Begin(); });
    for (uint32_t step = 0; step < blocks[0]->Steps(); ++step) {
      each([step](auto& block) { block.Run(step); });
    }
  }
  // The work items of one thread block.
  void RunBlock(const Node& node, uint32_t first, uint32_t blocks, const LaneArray& lanes) const {
    SharedOfBlock shared = MakeShared(SharedBytesOf(node));
    const Block block(kBlockThreads, reinterpret_cast<std::byte*>(shared.data()), emulation_.order);
    const uint32_t items = WorkItemsOf(node, lanes.count, kBlockWarps);
    for (uint32_t item = first; item < items; item += blocks) {
      RunItem(node, Work{lanes.lanes, lanes.count, item, block});
    }
  }

  struct alignas(16) Aligned16 {
    std::byte bytes[16];
  };
  using SharedOfBlock = std::vector<Aligned16>;
  // Allocated for each node, so that a sanitizer sees accesses beyond it, and filled with a
  // pattern, so that no node finds the results of an earlier node.
  static SharedOfBlock MakeShared(uint64_t bytes) {
    SharedOfBlock shared(bytes / sizeof(Aligned16) + 1);
    std::memset(shared.data(), kPoison, shared.size() * sizeof(Aligned16));
    return shared;
  }
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
  bool IsNodeByNode() const override { return emulation_.is_node_by_node; }
  uint32_t TextTokens() const override { return emulation_.text_tokens; }
  bool HasExactHalves() const override { return emulation_.has_exact_halves; }
  bool HasClustersFor(const Node& node) const override {
    return emulation_.has_clusters && SharedBytesOf(node) <= emulation_.shared_bytes;
  }
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
  // Not counted: it is the host's.
  Result<std::byte*> AllocateMapped(size_t bytes) override {
    void* const memory = ::operator new(bytes, kAlignment, std::nothrow);
    if (memory == nullptr) {
      return Status::Refusal(KINGLET_OUT_OF_MEMORY, "cuda", "pinned host memory",
                             std::to_string(bytes) + " bytes", "less");
    }
    return static_cast<std::byte*>(std::memset(memory, 0, bytes));
  }
  void FreeMapped(std::byte* memory) override { Release()(memory); }
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

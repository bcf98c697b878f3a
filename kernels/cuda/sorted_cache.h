// The tokens of a lane's neural cache in sorted order, so that a thread block finds them fast.
// C++17.
//
// A thread block sorts the pairs (token, slot) by a bitonic sort in shared memory, 8 bytes a pair;
// each thread compares and swaps one pair of keys between two barriers.
#ifndef KINGLET_KERNELS_CUDA_SORTED_CACHE_H_
#define KINGLET_KERNELS_CUDA_SORTED_CACHE_H_

#include <cstdint>

#include "kernels/cuda/lane_tokens.h"

namespace kinglet::cuda::internal {

class SortedCache {
 public:
  KINGLET_HOST_DEVICE SortedCache(const RankedTokensPlan& plan, SharedMemory& shared)
      : room_(Room(plan)), keys_(shared.Take<uint64_t>(room_)), cache_(plan.cache) {}
  KINGLET_HOST_DEVICE static uint32_t Room(const RankedTokensPlan& plan) {
    uint32_t room = 1;
    while (plan.cache.present && room < plan.cache.capacity) room *= 2;
    return room;
  }
  KINGLET_HOST_DEVICE static uint64_t Bytes(const RankedTokensPlan& plan) {
    return SharedMemory::Bytes<uint64_t>(Room(plan));
  }

  // Block-wide: sorts the pairs. Pairs of weight 0, which change nothing, are omitted.
  KINGLET_HOST_DEVICE void Sort(const Work& work, const Lane& lane) {
    const uint32_t pairs = cache_.Pairs(lane.position);
    if (pairs == 0) {
      size_ = 0;
      return;
    }
    weights_ = work.At<float>(lane, cache_.weights);
    const uint32_t* tokens = work.At<uint32_t>(lane, cache_.tokens);
    size_ = 1;
    while (size_ < pairs) size_ *= 2;
    work.block.ForEach(size_, [&](uint64_t i) {
      const bool counts = i < pairs && weights_[i] > 0.0f;
      keys_[i] = counts ? uint64_t{tokens[i]} << 32 | i : kNone;
    });
    for (uint32_t run = 2; run <= size_; run *= 2) {
      for (uint32_t distance = run / 2; distance > 0; distance /= 2) {
        work.block.ForEach(size_ / 2, [&](uint64_t i) {
          // 2 pair - pair % distance; `distance` is a power of 2.
          const auto pair = static_cast<uint32_t>(i);
          const uint32_t low = 2 * pair - (pair & (distance - 1)), high = low + distance;
          const bool ascending = (low & run) == 0;
          if ((keys_[low] > keys_[high]) != ascending) return;
          const uint64_t key = keys_[low];
          keys_[low] = keys_[high];
          keys_[high] = key;
        });
      }
    }
  }
  // How many entries there are; some at the end may be empty.
  KINGLET_HOST_DEVICE uint32_t size() const { return size_; }
  // Whether a token begins at entry i; TokenAt: the token of entry i.
  KINGLET_HOST_DEVICE bool IsFirst(uint64_t i) const {
    return keys_[i] != kNone && (i == 0 || keys_[i - 1] >> 32 != keys_[i] >> 32);
  }
  KINGLET_HOST_DEVICE uint32_t TokenAt(uint64_t i) const {
    return static_cast<uint32_t>(keys_[i] >> 32);
  }
  // The weight of the token that begins at entry i.
  KINGLET_HOST_DEVICE float WeightAt(uint64_t i) const {
    const uint64_t token = keys_[i] >> 32;
    uint64_t units = 0;
    for (; i < size_ && keys_[i] >> 32 == token; ++i) {
      units += UnitsOf(weights_[keys_[i] & 0xffffffffu]);
    }
    return WeightOfUnits<float>(units);
  }
  KINGLET_HOST_DEVICE bool Holds(uint32_t token) const {
    uint64_t low = 0, high = size_;
    while (low < high) {
      const uint64_t middle = (low + high) / 2;
      if (keys_[middle] >> 32 < token) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low < size_ && keys_[low] >> 32 == token;
  }

 private:
  static constexpr uint64_t kNone = UINT64_MAX;
  uint32_t room_;
  uint64_t* keys_;
  const RankedCache& cache_;
  const float* weights_ = nullptr;
  uint32_t size_ = 0;
};

}  // namespace kinglet::cuda::internal

#endif  // KINGLET_KERNELS_CUDA_SORTED_CACHE_H_

// The tokens of a lane's neural cache with the sums of their weights, as a hash table in a thread
// block's shared memory. C++17.
//
// Pairs are added by atomic operations. Sums of weights are sums of integers, exact in any order
// (kernels/cache_weight.h); only an entry's place depends on the order.
#ifndef KINGLET_KERNELS_CUDA_CACHED_TOKENS_H_
#define KINGLET_KERNELS_CUDA_CACHED_TOKENS_H_

#include <cstdint>
#include <cstring>

#include "kernels/cuda/lane_tokens.h"

namespace kinglet::cuda::internal {

class CachedTokens {
 public:
  KINGLET_HOST_DEVICE CachedTokens(const RankedTokensPlan& plan, SharedMemory& shared)
      : room_(Room(plan)),
        ids_(shared.Take<uint32_t>(room_)),
        entries_(shared.Take<uint64_t>(room_)),
        cache_(plan.cache) {}
  // Entries, a power of 2; a fifth of them, at least, stay empty.
  KINGLET_HOST_DEVICE static uint32_t Room(const RankedTokensPlan& plan) {
    if (!plan.cache.present) return 0;
    uint32_t room = 1;
    while (room < plan.cache.capacity + DivideUp(plan.cache.capacity, 4u)) room *= 2;
    return room;
  }
  KINGLET_HOST_DEVICE static uint64_t Bytes(const RankedTokensPlan& plan) {
    return SharedMemory::Bytes<uint32_t>(Room(plan)) + SharedMemory::Bytes<uint64_t>(Room(plan));
  }

  // Block-wide: reads the pairs. Pairs of weight 0, which change nothing, are omitted.
  KINGLET_HOST_DEVICE void Fill(const Work& work, const Lane& lane) {
    const uint32_t pairs = cache_.Pairs(lane.position);
    size_ = pairs == 0 ? 0 : room_;
    work.block.ForEach(size_, [&](uint64_t i) {
      ids_[i] = kNone;
      entries_[i] = 0;
    });
    const auto* const weights = work.At<float>(lane, cache_.weights);
    const auto* const tokens = work.At<uint32_t>(lane, cache_.tokens);
    work.block.ForEach(pairs, [&](uint64_t i) {
      if (weights[i] > 0.0f) AtomicAdd(&entries_[Take(tokens[i])], UnitsOf(weights[i]));
    });
    work.block.ForEach(size_, [&](uint64_t i) {
      Entry(i) = {WeightOfUnits<float>(entries_[i]), 0.0f};
    });
  }
  // How many entries there are, most of them empty (kNone).
  KINGLET_HOST_DEVICE uint32_t size() const { return size_; }
  static constexpr uint32_t kNone = UINT32_MAX;
  KINGLET_HOST_DEVICE uint32_t TokenAt(uint64_t i) const { return ids_[i]; }
  KINGLET_HOST_DEVICE float WeightAt(uint64_t i) const { return Entry(i).weight; }
  // A number of the caller's for each entry.
  KINGLET_HOST_DEVICE float& ValueAt(uint64_t i) const { return Entry(i).value; }
  KINGLET_HOST_DEVICE bool Holds(uint32_t token) const {
    return size_ > 0 && ids_[Find(token)] == token;
  }
  // The entry of a token, or the empty entry in which it would be. REQUIRES: size() > 0.
  KINGLET_HOST_DEVICE uint32_t Find(uint32_t token) const {
    uint32_t at = First(token);
    while (ids_[at] != kNone && ids_[at] != token) at = (at + 1) & (room_ - 1);
    return at;
  }

 private:
  struct WeightAndValue {
    float weight, value;
  };
  KINGLET_HOST_DEVICE WeightAndValue& Entry(uint64_t i) const {
    return reinterpret_cast<WeightAndValue*>(entries_)[i];
  }
  // Where the search for a token begins.
  KINGLET_HOST_DEVICE uint32_t First(uint32_t token) const {
    return (token * 2654435769u >> 16) & (room_ - 1);
  }
  // The entry of a token, which is made if there is none.
  KINGLET_HOST_DEVICE uint32_t Take(uint32_t token) const {
    uint32_t at = First(token);
    while (true) {
      const uint32_t found = AtomicExchangeIf(&ids_[at], kNone, token);
      if (found == kNone || found == token) return at;
      at = (at + 1) & (room_ - 1);
    }
  }

  uint32_t room_;
  uint32_t* ids_;
  uint64_t* entries_;  // sums of units, then WeightAndValue
  const RankedCache& cache_;
  uint32_t size_ = 0;
};

}  // namespace kinglet::cuda::internal

#endif  // KINGLET_KERNELS_CUDA_CACHED_TOKENS_H_

// The neural cache (kernels/op.h, CacheAppend and CacheWeights; Grave et al. 2017). C++17.
//
//   weights[i] = CacheWeight(exp(theta * (hidden . key[i]) - max over all pairs)),
//   total = sum of the weights
//
// CacheProducts divides a lane's pairs among thread blocks, so several multiprocessors read its
// keys at once; groups of threads compute the dot products (dots.h). CacheTotal then takes one
// thread block per lane. Products of codes are integers and exact; sums of floats follow rule 4 of
// docs/NUMERICS.md.
#ifndef KINGLET_KERNELS_CUDA_CACHE_H_
#define KINGLET_KERNELS_CUDA_CACHE_H_

#include <cstdint>
#include <type_traits>

#include "kernels/cuda/dots.h"
#include "kernels/cuda/node.h"
#include "kernels/cuda/sums.h"
#include "kernels/functions.h"
#include "kernels/ring.h"

namespace kinglet::cuda {

// The keys of the pairs: [capacity, width], with the hidden state's elements or codes in 9 bits.
struct Keys {
  Place place;
  bool nine_bits;
};

// Stores the pair of the hidden state before this token, and the token, in its ring slot.
struct AppendToCache : ByLane {
  static constexpr uint32_t kAloneFromLanes = kManyLanes;
  Vector hidden;
  Keys keys;
  Place tokens;  // [capacity] of uint32
  uint32_t capacity;
};

KINGLET_HOST_DEVICE inline void Run(const AppendToCache& p, const Work& work) {
  const Lane& lane = work.lanes[work.item];
  if (lane.position == 0) return;
  const uint64_t slot = RingSlot(lane.position - 1, p.capacity), width = p.hidden.count;
  work.block.ForEach(1, [&](uint64_t) { work.At<uint32_t>(lane, p.tokens)[slot] = lane.token; });
  if (p.keys.nine_bits) {
    const NineBitRow row{width};
    const int16_t* const hidden = work.At<int16_t>(lane, p.hidden.place);
    uint8_t* const key = work.At<uint8_t>(lane, p.keys.place) + slot * row.Bytes();
    work.block.ForEach(row.Bytes(), [&](uint64_t at) {
      key[at] = row.Byte(at, [hidden](uint64_t i) { return hidden[i]; });
    });
    return;
  }
  work.block.ForEach(width, [&](uint64_t i) {
    const uint64_t at = slot * width + i;
    if (p.hidden.codes) {
      work.At<int16_t>(lane, p.keys.place)[at] = work.At<int16_t>(lane, p.hidden.place)[i];
    } else {
      work.At<float>(lane, p.keys.place)[at] = work.At<float>(lane, p.hidden.place)[i];
    }
  });
}

// The pairs of a cache: arguments of CacheProducts and CacheTotal.
struct CacheArguments {
  Vector hidden;
  Keys keys;
  Place weights;  // [capacity] of floats
  Place total;    // [1] of floats
  uint32_t capacity;
  uint64_t first_position;
  float theta;
  float product_scale;  // for codes: what a product of two codes is multiplied by
  CodeRows rows;        // for codes: how hidden state and keys are multiplied

  // How many pairs take part.
  KINGLET_HOST_DEVICE uint32_t Stored(const Lane& lane) const {
    return CachePairs(lane.position, capacity, first_position);
  }
};

// weights[i] = theta * (hidden . key[i]). A work item is PairsOfItem pairs of a lane. Shared
// memory: the hidden state.
struct CacheProducts {
  static constexpr uint32_t kAloneFromLanes = kManyLanes;
  CacheArguments pairs;

  KINGLET_HOST_DEVICE static uint32_t PairsOfItem(uint32_t lanes) {
    return lanes < kManyLanes ? 32 : 128;
  }
  KINGLET_HOST_DEVICE uint32_t Parts(uint32_t lanes) const {
    return DivideUp(pairs.capacity, PairsOfItem(lanes));
  }
  KINGLET_HOST_DEVICE uint32_t WorkItems(uint32_t lanes, uint32_t) const {
    return lanes * Parts(lanes);
  }
  KINGLET_HOST_DEVICE uint64_t SharedBytes() const {
    return pairs.hidden.codes ? SharedMemory::Bytes<int16_t>(pairs.hidden.count)
                              : SharedMemory::Bytes<float>(pairs.hidden.count);
  }
};

namespace internal {
template <class T>
KINGLET_HOST_DEVICE void CacheProductsOf(const CacheProducts& p, const Work& work) {
  const CacheArguments& pairs = p.pairs;
  const LaneItem item(work, p.Parts(work.lane_count));
  const Lane& lane = work.lanes[item.lane];
  const uint32_t most = CacheProducts::PairsOfItem(work.lane_count);
  const uint32_t first = item.part * most, stored = pairs.Stored(lane);
  if (first >= stored) return;
  const uint32_t count = Least(stored - first, most);
  const uint32_t width = pairs.hidden.count;
  const T* const hidden = work.At<T>(lane, pairs.hidden.place);
  float* const weights = work.At<float>(lane, pairs.weights) + first;
  T* const q = SharedMemory(work.block).Take<T>(width);
  work.block.ForEach(width, [&](uint64_t i) { q[i] = hidden[i]; });
  const auto key = [&](uint64_t i) {
    return work.At<T>(lane, pairs.keys.place) + (first + i) * width;
  };
  if constexpr (std::is_same_v<T, float>) {
    RealDots(work.block, count, width, q, key,
             [&](uint64_t i, float dot) { weights[i] = pairs.theta * dot; });
  } else {
    const auto use = [&](uint64_t i, auto sum) {
      weights[i] = pairs.theta * (static_cast<float>(sum) * pairs.product_scale);
    };
    if (pairs.keys.nine_bits) {
      const NineBitRow row{width};
      const uint8_t* const rows =
          work.At<uint8_t>(lane, pairs.keys.place) + uint64_t{first} * row.Bytes();
      CodeDots(
          work.block, count, width, pairs.rows, q,
          [&](uint64_t i) {
            return NineBitCodes{row, rows + i * row.Bytes()};
          },
          use);
    } else {
      CodeDots(work.block, count, width, pairs.rows, q, key, use);
    }
  }
}
}  // namespace internal

KINGLET_HOST_DEVICE inline void Run(const CacheProducts& p, const Work& work) {
  WithElements(p.pairs.hidden.codes,
               [&](auto zero) { internal::CacheProductsOf<decltype(zero)>(p, work); });
}

// weights = CacheWeight(exp(weights - max)), total = their sum. A work item is a lane: one thread
// block computes a few thousand exponentials in less time than two more barriers of all thread
// blocks would take.
struct CacheTotal : ByLane {
  static constexpr uint32_t kAloneFromLanes = kManyLanes;
  CacheArguments pairs;

  KINGLET_HOST_DEVICE uint64_t SharedBytes() const {
    return SharedMemory::Bytes<float>(kLargestParts) + SharedMemory::Bytes<uint64_t>(kLargestParts);
  }
};

// Block-wide: the weights and the total of a lane.
KINGLET_HOST_DEVICE inline void WeighPairs(const CacheArguments& pairs, const Work& work,
                                           const Lane& lane) {
  const uint32_t stored = pairs.Stored(lane);
  float* const total = work.At<float>(lane, pairs.total);
  if (stored == 0) {
    work.block.ForEach(1, [&](uint64_t) { *total = 0.0f; });
    return;
  }
  SharedMemory shared(work.block);
  float* const parts = shared.Take<float>(kLargestParts);
  auto* const sums = shared.Take<uint64_t>(kLargestParts);
  float* const weights = work.At<float>(lane, pairs.weights);
  const float largest =
      BlockLargest(work.block, stored, true, parts, [&](uint64_t i) { return weights[i]; });
  work.block.ForEach(stored,
                     [&](uint64_t i) { weights[i] = CacheWeight(Exp(weights[i] - largest)); });
  const uint64_t units =
      BlockUnits(work.block, stored, sums, [&](uint64_t i) { return UnitsOf(weights[i]); });
  work.block.ForEach(1, [&](uint64_t) { *total = WeightOfUnits<float>(units); });
}

KINGLET_HOST_DEVICE inline void Run(const CacheTotal& p, const Work& work) {
  WeighPairs(p.pairs, work, work.lanes[work.item]);
}

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_CACHE_H_

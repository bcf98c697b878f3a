// The neural cache (kernels/op.h, CacheAppend and CacheWeights; Grave et al. 2017). C++17.
//
//   weights[i] = CacheWeight(exp(theta * (hidden . key[i]) - max over all pairs)),
//   total = sum of the weights
//
// CacheProducts divides a lane's pairs among thread blocks, so several multiprocessors read its
// keys at once. Tensor cores multiply keys of 9 bits (nine_bit_tiles.h), half warps any other keys
// (dots.h). CacheTotal then takes one thread block per lane. Products of codes are integers and
// exact; sums of floats follow rule 4 of docs/NUMERICS.md.
#ifndef KINGLET_KERNELS_CUDA_CACHE_H_
#define KINGLET_KERNELS_CUDA_CACHE_H_

#include <cstdint>
#include <type_traits>

#include "kernels/cuda/dots.h"
#include "kernels/cuda/nine_bit_tiles.h"
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
  Vector hidden;
  Keys keys;
  Place tokens;   // [ring] of uint32
  uint32_t ring;  // slots, the cache's capacity or more
  bool of_text;   // the hidden state before is that of the lane before (text.h)
};

KINGLET_HOST_DEVICE inline void Run(const AppendToCache& p, const Work& work) {
  const Lane& lane = work.lanes[work.item];
  if (lane.position == 0) return;
  const Lane& before = p.of_text ? *(work.lanes + work.item - 1) : lane;
  const uint64_t slot = RingSlot(lane.Row() - 1, p.ring), width = p.hidden.count;
  work.block.ForEach(1, [&](uint64_t) { work.At<uint32_t>(lane, p.tokens)[slot] = lane.token; });
  if (p.keys.nine_bits) {
    const NineBitRow row{width};
    const int16_t* const hidden = work.At<int16_t>(before, p.hidden.place);
    uint8_t* const key = work.At<uint8_t>(lane, p.keys.place) + slot * row.Bytes();
    work.block.ForEach(row.Bytes(), [&](uint64_t at) {
      key[at] = row.Byte(at, [hidden](uint64_t i) { return hidden[i]; });
    });
    return;
  }
  work.block.ForEach(width, [&](uint64_t i) {
    const uint64_t at = slot * width + i;
    if (p.hidden.codes) {
      work.At<int16_t>(lane, p.keys.place)[at] = work.At<int16_t>(before, p.hidden.place)[i];
    } else {
      work.At<float>(lane, p.keys.place)[at] = work.At<float>(before, p.hidden.place)[i];
    }
  });
}

// The pairs of a cache: arguments of CacheProducts and CacheTotal.
struct CacheArguments {
  Vector hidden;
  Keys keys;
  Place weights;            // [capacity] of floats
  Place total;              // [1] of floats
  uint32_t capacity, ring;  // pairs, and slots of the ring that stores them
  uint64_t first_position;
  float theta;
  float product_scale;  // for codes: what a product of two codes is multiplied by

  // For codes: the weight before the softmax, from the sum of the products of codes.
  KINGLET_HOST_DEVICE float WeightOf(float sum) const { return theta * (sum * product_scale); }
  KINGLET_HOST_DEVICE PairSlots Slots(const Lane& lane) const {
    return PairSlots(lane.Row(), Stored(lane), capacity, ring);
  }
  // How many pairs take part.
  KINGLET_HOST_DEVICE uint32_t Stored(const Lane& lane) const {
    return CachePairs(lane.position, capacity, first_position);
  }
};

// weights[i] = theta * (hidden . key[i]). A work item is kPairsOfItem pairs of a lane, or of
// neighbouring tokens of a text, which see most pairs together. Shared memory: hidden states.
struct CacheProducts {
  static constexpr uint32_t kPairsOfItem = 128;
  static constexpr uint32_t kMostTokens = kTileStreams / 2;
  CacheArguments pairs;
  uint32_t tokens;  // of a work item; more than 1 for keys of 9 bits alone

  KINGLET_HOST_DEVICE uint32_t Parts() const {
    return DivideUp(pairs.capacity + tokens - 1, uint32_t{kPairsOfItem});
  }
  KINGLET_HOST_DEVICE uint32_t WorkItems(uint32_t lanes, uint32_t) const {
    return DivideUp(lanes, tokens) * Parts();
  }
  KINGLET_HOST_DEVICE uint64_t SharedBytes() const {
    if (pairs.keys.nine_bits) return 2 * tokens * NineBitRow{pairs.hidden.count}.Padded();
    return pairs.hidden.codes ? SharedMemory::Bytes<int16_t>(pairs.hidden.count)
                              : SharedMemory::Bytes<float>(pairs.hidden.count);
  }
};

namespace internal {

// Block-wide: a part of the weights of `count` tokens from lane `lanes` on, where keys, and so the
// hidden states' codes q, have 9 bits. A tile of bytes is 16 keys, and for each token the columns
// q >> 1 and q & 1.
KINGLET_HOST_DEVICE inline void MultiplyNineBitKeys(const CacheArguments& pairs, const Work& work,
                                                    const Lane* lanes, uint32_t count,
                                                    uint32_t part) {
  const Block& block = work.block;
  const NineBitRow row{pairs.hidden.count};
  // The tokens see rows [begin, end) of the ring together.
  uint64_t begin = UINT64_MAX;
  for (uint32_t token = 0; token < count; ++token) {
    begin = Least(begin, lanes[token].Row() - pairs.Stored(lanes[token]));
  }
  const uint64_t end = lanes[count - 1].Row();
  const auto seen = static_cast<uint32_t>(end - begin);
  const uint32_t first = part * CacheProducts::kPairsOfItem;
  if (first >= seen) return;
  const uint32_t rows = Least(seen - first, uint32_t{CacheProducts::kPairsOfItem});
  const PairSlots slots(end, seen, pairs.capacity, pairs.ring);
  const uint8_t* const keys = work.At<uint8_t>(*lanes, pairs.keys.place);
  const auto padded = static_cast<uint32_t>(row.Padded());
  auto* const q = SharedMemory(block).Take<uint8_t>(uint64_t{2} * count * padded);
  block.ForEach(uint64_t{count} * padded, [&](uint64_t i) {
    const uint32_t token = static_cast<uint32_t>(i) / padded, k = static_cast<uint32_t>(i) % padded;
    const int16_t* const hidden = work.At<int16_t>(lanes[token], pairs.hidden.place);
    const int32_t code = k < row.count ? hidden[k] : 0;
    q[2 * token * padded + k] = static_cast<uint8_t>(code >> 1);
    q[(2 * token + 1) * padded + k] = static_cast<uint8_t>(code & 1);
  });
  block.EachWarp([&](const Warp& warp) {
    for (uint32_t tile = warp.index() * kTileRows; tile < rows; tile += block.warps() * kTileRows) {
      PerThread<TileD> of_low{}, of_signs{};
      // Loads of several steps are in flight together.
#if KINGLET_CUDA_ON_DEVICE
#pragma unroll 2
#endif
      for (uint32_t step = 0; step < padded / kTileDepth; ++step) {
        PerThread<TileA> low, signs;
        PerThread<TileB> x;
        warp.EachThread([&](uint32_t thread, uint32_t reg) {
          LoadNineBitTile(
              row, step, thread,
              [&](uint32_t i) {
                return keys + slots.Of(first + Least(tile + i, rows - 1)) * row.Bytes();
              },
              low[reg], signs[reg]);
          const uint32_t column = thread / 4;
          const uint8_t* const from = q + column * padded + step * kTileDepth + thread % 4 * 4;
          for (uint32_t half = 0; half < 2; ++half) {
            x[reg].registers[half] =
                column < 2 * count ? LoadAligned<uint32_t>(from + 16 * half) : 0;
          }
        });
        MultiplyTiles<false, true>(warp, low, x, of_low);
        MultiplyTiles<true, true>(warp, signs, x, of_signs);
      }
      warp.EachThread([&](uint32_t thread, uint32_t reg) {
        const uint32_t token = thread % 4;  // whose two columns this thread has
        if (token >= count) return;
        const Lane& lane = lanes[token];
        const uint32_t stored = pairs.Stored(lane);
        const auto before = static_cast<uint32_t>(lane.Row() - stored - begin);
        float* const weights = work.At<float>(lane, pairs.weights);
        for (uint32_t i = 0; i < 4; i += 2) {
          const uint32_t at = tile + TileRow(thread, i), pair = first + at - before;
          if (at >= rows || pair >= stored) continue;
          const auto sum_of = [&](uint32_t j) {
            return of_low[reg].sums[j] + 256 * of_signs[reg].sums[j];
          };
          weights[pair] = pairs.WeightOf(static_cast<float>(2 * sum_of(i) + sum_of(i + 1)));
        }
      });
    }
  });
}

template <class T>
KINGLET_HOST_DEVICE void CacheProductsOf(const CacheProducts& p, const Work& work) {
  const CacheArguments& pairs = p.pairs;
  constexpr uint32_t kMost = CacheProducts::kPairsOfItem;
  const LaneItem item(work, p.Parts());
  if (pairs.keys.nine_bits) {
    const uint32_t at = item.lane * p.tokens;
    return MultiplyNineBitKeys(pairs, work, work.lanes + at, Least(p.tokens, work.lane_count - at),
                               item.part);
  }
  const Lane& lane = work.lanes[item.lane];
  const uint32_t first = item.part * kMost, stored = pairs.Stored(lane);
  if (first >= stored) return;
  const uint32_t count = Least(stored - first, uint32_t{kMost});
  const uint32_t width = pairs.hidden.count;
  const T* const hidden = work.At<T>(lane, pairs.hidden.place);
  float* const weights = work.At<float>(lane, pairs.weights) + first;
  T* const q = SharedMemory(work.block).Take<T>(width);
  work.block.ForEach(width, [&](uint64_t i) { q[i] = hidden[i]; });
  const PairSlots slots = pairs.Slots(lane);
  const auto key = [&](uint64_t i) {
    return work.At<T>(lane, pairs.keys.place) +
           uint64_t{slots.Of(first + static_cast<uint32_t>(i))} * width;
  };
  if constexpr (std::is_same_v<T, float>) {
    BlockRowSums(
        work.block, count, width,
        [&](float sum, uint64_t i, uint64_t k) { return fmaf(q[k], key(i)[k], sum); },
        [&](uint64_t i, float dot) { weights[i] = pairs.theta * dot; });
  } else {
    BlockRowIntegers(
        work.block, count, width, [&](uint64_t i, uint64_t k) { return q[k] * key(i)[k]; },
        [&](uint64_t i, int64_t sum) { weights[i] = pairs.WeightOf(static_cast<float>(sum)); });
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

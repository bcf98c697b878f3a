// The constants of docs/NUMERICS.md that every backend shares. C++17, for the device too.
#ifndef KINGLET_KERNELS_NUMERICS_H_
#define KINGLET_KERNELS_NUMERICS_H_

#include <cstdint>

#include "kernels/host_device.h"

namespace kinglet {

// Rule 2: the codes of 15-bit fixed point lie in [-kFixedPointLimit, kFixedPointLimit]. The scale
// of a vector is its largest magnitude divided by this.
inline constexpr int32_t kFixedPointLimit = 16383;

// Rule 3: whether int32_t can represent every sum of n products of integers up to a and b in
// magnitude. REQUIRES: 0 <= a, b < 2^31.
KINGLET_HOST_DEVICE constexpr bool SumFitsInt32(uint64_t n, int64_t a, int64_t b) {
  const int64_t product = a * b;
  return product == 0 || n <= static_cast<uint64_t>(INT32_MAX / product);
}

// Rule 4: a sum of fewer than kShortSum floats is one chain. A longer one is split into tiles of
// kSumTile elements, and a tile into kSumChains chains.
inline constexpr uint32_t kShortSum = 32;
inline constexpr uint32_t kSumChains = 16;
inline constexpr uint32_t kSumTile = 1024;
// How many tiles a sum of n terms has.
KINGLET_HOST_DEVICE constexpr uint64_t SumTiles(uint64_t n) {
  return (n + kSumTile - 1) / kSumTile;
}

}  // namespace kinglet

#endif  // KINGLET_KERNELS_NUMERICS_H_

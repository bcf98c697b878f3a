// Products of small integers on half-precision tensor cores, by one warp: D = A B for A [16, 8] and
// B [8, 8] of integers that half precision has exactly and D [16, 8] of floats. C++17.
//
// Sums are exact, in any order, while the magnitudes of their products add up to at most 2^24:
// tensor cores align products to the largest with at least 24 bits. bench/gpu_facts tests that on a
// device; the emulation traps where a sum would not be exact.
//
// Each thread of the warp has some entries of the three tiles, as the PTX manual's description of
// mma.m16n8k8 for half precision defines. D's entries are those of a product of bytes
// (byte_product.h, TileRow and TileStream).
#ifndef KINGLET_KERNELS_CUDA_HALF_PRODUCT_H_
#define KINGLET_KERNELS_CUDA_HALF_PRODUCT_H_

#include <cstdint>

#include "kernels/cuda/byte_product.h"

#if defined(__CUDACC__)
#include <cuda_fp16.h>
#endif

namespace kinglet::cuda {

// Two integers, each of at most 11 bits times a power of two and at most 65,504.
struct HalfPair {
#if KINGLET_CUDA_ON_DEVICE
  uint32_t bits;
  __device__ static HalfPair Of(int32_t first, int32_t second) {
    const __half2 pair = __halves2half2(__int2half_rn(first), __int2half_rn(second));
    return {*reinterpret_cast<const uint32_t*>(&pair)};
  }
#else
  int32_t values[2];
  KINGLET_HOST_DEVICE static HalfPair Of(int32_t first, int32_t second) {
    return {{first, second}};
  }
#endif
};

// With g = thread / 4 and t = thread % 4, a thread has, as (row, column),
//   A: pairs (g, 2 t ..) and (g + 8, 2 t ..)
//   B: the pair (2 t .., g)
struct HalfTileA {
  HalfPair rows[2];
};
struct HalfTileD {
  float sums[4];
};

namespace internal {
// Whether half precision has the integer exactly.
KINGLET_HOST_DEVICE inline bool IsHalf(int32_t x) {
  int32_t magnitude = x < 0 ? -x : x;
  if (magnitude > 65504) return false;
  while (magnitude >= 2048 && magnitude % 2 == 0) magnitude /= 2;
  return magnitude < 2048;
}
}  // namespace internal

// By one warp: d = a b.
KINGLET_HOST_DEVICE inline void MultiplyHalfTiles(const Warp& warp, const PerThread<HalfTileA>& a,
                                                  const PerThread<HalfPair>& b,
                                                  PerThread<HalfTileD>& d) {
#if KINGLET_CUDA_ON_DEVICE
  static_cast<void>(warp);
  float* const z = d[0].sums;
  asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, "
      "{%7,%7,%7,%7};"
      : "=f"(z[0]), "=f"(z[1]), "=f"(z[2]), "=f"(z[3])
      : "r"(a[0].rows[0].bits), "r"(a[0].rows[1].bits), "r"(b[0].bits), "f"(0.0f));
#else
  warp.EachThread([&](uint32_t thread, uint32_t reg) {
    for (uint32_t i = 0; i < 4; ++i) {
      const uint32_t row = TileRow(thread, i), column = TileStream(thread, i);
      int64_t sum = 0, magnitudes = 0;
      for (uint32_t k = 0; k < 8; ++k) {
        const int32_t x = a[row % 8 * 4 + k / 2].rows[row / 8].values[k % 2];
        const int32_t y = b[column * 4 + k / 2].values[k % 2];
        if (!internal::IsHalf(x) || !internal::IsHalf(y)) __builtin_trap();
        sum += int64_t{x} * y;
        magnitudes += int64_t{x < 0 ? -x : x} * (y < 0 ? -y : y);
      }
      if (magnitudes > int64_t{1} << 24) __builtin_trap();
      d[reg].sums[i] = static_cast<float>(sum);
    }
  });
#endif
}

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_HALF_PRODUCT_H_

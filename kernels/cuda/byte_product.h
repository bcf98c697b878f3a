// Products of bytes on tensor cores, by one warp: D += A B for A [16, 32] and B [32, 8] of signed
// or unsigned bytes and D [16, 8] of 32-bit integers. Sums of integers are exact in any order.
// C++17.
//
// Each thread of the warp has some entries of the three tiles, as the PTX manual's description of
// mma.m16n8k32 for 8-bit integers defines. B's columns are vectors of 8 streams.
#ifndef KINGLET_KERNELS_CUDA_BYTE_PRODUCT_H_
#define KINGLET_KERNELS_CUDA_BYTE_PRODUCT_H_

#include <cstdint>

#include "kernels/cuda/block.h"

namespace kinglet::cuda {

inline constexpr uint32_t kTileRows = 16;    // of A and D
inline constexpr uint32_t kTileDepth = 32;   // columns of A, rows of B
inline constexpr uint32_t kTileStreams = 8;  // columns of B and D, one for each stream

// Four bytes are a 32-bit value, the first byte in its lowest bits. With g = thread / 4 and t =
// thread % 4, a thread has, as (row, column),
//   A: values (g, 4 t ..), (g + 8, 4 t ..), (g, 16 + 4 t ..), (g + 8, 16 + 4 t ..)
//   B: values (4 t .., g), (16 + 4 t .., g)
//   D: (g, 2 t), (g, 2 t + 1), (g + 8, 2 t), (g + 8, 2 t + 1)
struct TileA {
  uint32_t registers[4];
};
struct TileB {
  uint32_t registers[2];
};
struct TileD {
  int32_t sums[4];
};
// The row and the column (stream) of D of sum i of a thread.
KINGLET_HOST_DEVICE constexpr uint32_t TileRow(uint32_t thread, uint32_t i) {
  return thread / 4 + (i < 2 ? 0 : 8);
}
KINGLET_HOST_DEVICE constexpr uint32_t TileStream(uint32_t thread, uint32_t i) {
  return thread % 4 * 2 + i % 2;
}
namespace internal {
template <bool kSigned>
KINGLET_HOST_DEVICE inline int32_t ByteOf(uint32_t bytes, uint32_t i) {
  const uint32_t byte = bytes >> (8 * i) & 0xffu;
  return kSigned ? static_cast<int32_t>(static_cast<int8_t>(byte)) : static_cast<int32_t>(byte);
}
template <bool kSignedA, bool kSignedB>
KINGLET_HOST_DEVICE inline int32_t DotBytes(uint32_t a, uint32_t b) {
  int32_t sum = 0;
  for (uint32_t i = 0; i < 4; ++i) sum += ByteOf<kSignedA>(a, i) * ByteOf<kSignedB>(b, i);
  return sum;
}
}  // namespace internal

// By one warp: d += a b. REQUIRES: every sum fits 32 bits.
template <bool kSignedA, bool kSignedB>
KINGLET_HOST_DEVICE inline void MultiplyTiles(const Warp& warp, const PerThread<TileA>& a,
                                              const PerThread<TileB>& b, PerThread<TileD>& d) {
#if KINGLET_CUDA_ON_DEVICE && __CUDA_ARCH__ >= 800
  static_cast<void>(warp);
  const uint32_t* x = a[0].registers;
  const uint32_t* y = b[0].registers;
  int32_t* z = d[0].sums;
#define KINGLET_MMA(TYPE_A, TYPE_B)                                \
  asm("mma.sync.aligned.m16n8k32.row.col.s32." TYPE_A "." TYPE_B   \
      ".s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" \
      : "+r"(z[0]), "+r"(z[1]), "+r"(z[2]), "+r"(z[3])             \
      : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]))
  if constexpr (kSignedA && kSignedB) {
    KINGLET_MMA("s8", "s8");
  } else if constexpr (kSignedA) {
    KINGLET_MMA("s8", "u8");
  } else if constexpr (kSignedB) {
    KINGLET_MMA("u8", "s8");
  } else {
    KINGLET_MMA("u8", "u8");
  }
#undef KINGLET_MMA
#elif KINGLET_CUDA_ON_DEVICE
  // Compute capability 7.5 has this instruction only for 8 x 8 x 16 tiles. Its threads get the
  // values that they multiply from each other by shuffles instead.
  static_cast<void>(warp);
  const uint32_t thread = threadIdx.x % kWarpThreads, row = thread / 4, pair = thread % 4;
  for (uint32_t source = 0; source < 4; ++source) {
    for (uint32_t part = 0; part < 2; ++part) {
      const uint32_t a_low =
          __shfl_sync(0xffffffffu, a[0].registers[2 * part], static_cast<int>(row * 4 + source));
      const uint32_t a_high = __shfl_sync(0xffffffffu, a[0].registers[2 * part + 1],
                                          static_cast<int>(row * 4 + source));
      for (uint32_t i = 0; i < 2; ++i) {
        const uint32_t bytes = __shfl_sync(0xffffffffu, b[0].registers[part],
                                           static_cast<int>((2 * pair + i) * 4 + source));
        d[0].sums[i] += internal::DotBytes<kSignedA, kSignedB>(a_low, bytes);
        d[0].sums[2 + i] += internal::DotBytes<kSignedA, kSignedB>(a_high, bytes);
      }
    }
  }
#else
  warp.EachThread([&](uint32_t thread, uint32_t reg) {
    for (uint32_t i = 0; i < 4; ++i) {
      const uint32_t row = TileRow(thread, i), stream = TileStream(thread, i);
      for (uint32_t source = 0; source < 4; ++source) {
        for (uint32_t part = 0; part < 2; ++part) {
          const uint32_t bytes_a = a[row % 8 * 4 + source].registers[2 * part + row / 8];
          const uint32_t bytes_b = b[stream * 4 + source].registers[part];
          d[reg].sums[i] += internal::DotBytes<kSignedA, kSignedB>(bytes_a, bytes_b);
        }
      }
    }
  });
#endif
}

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_BYTE_PRODUCT_H_

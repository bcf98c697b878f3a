// Products of 16-bit integers with bytes, four or eight at a time, by one thread. C++17.
//
// A code of 16 bits is an unsigned low byte and a signed high byte: code = low + 256 high. Sums are
// exact modulo 2^32.
#ifndef KINGLET_KERNELS_CUDA_SHORT_PRODUCTS_H_
#define KINGLET_KERNELS_CUDA_SHORT_PRODUCTS_H_

#include <cstdint>
#include <cstring>

#include "kernels/cuda/byte_product.h"

namespace kinglet::cuda {

// Bytes 0 and 2 of a, then of b.
KINGLET_HOST_DEVICE inline uint32_t EvenBytes(uint32_t a, uint32_t b) {
#if KINGLET_CUDA_ON_DEVICE
  return __byte_perm(a, b, 0x6420);
#else
  return (a & 0xffu) | (a >> 8 & 0xff00u) | (b & 0xffu) << 16 | (b << 8 & 0xff000000u);
#endif
}

// Four 16-bit integers, two in each value, the first in the low half.
struct FourShorts {
  uint32_t pairs[2];
  // The next of a vector that has `left` more; integers beyond its end are zeros.
  KINGLET_HOST_DEVICE static FourShorts Load(const int16_t* from, uint32_t left) {
    if (left >= 4 && reinterpret_cast<uintptr_t>(from) % sizeof(FourShorts) == 0) {
      return LoadAligned<FourShorts>(from);
    }
    const auto at = [&](uint32_t i) {
      return i < left ? uint32_t{static_cast<uint16_t>(from[i])} : 0u;
    };
    return {{at(0) | at(1) << 16, at(2) | at(3) << 16}};
  }
  // Their low bytes, their high bytes, and a bit for each that is negative.
  KINGLET_HOST_DEVICE uint32_t LowBytes() const { return EvenBytes(pairs[0], pairs[1]); }
  KINGLET_HOST_DEVICE uint32_t HighBytes() const { return EvenBytes(pairs[0] >> 8, pairs[1] >> 8); }
  KINGLET_HOST_DEVICE uint32_t Signs() const {
    return (pairs[0] >> 15 & 1u) | (pairs[0] >> 30 & 2u) | (pairs[1] >> 13 & 4u) |
           (pairs[1] >> 28 & 8u);
  }
};
struct EightShorts {
  FourShorts fours[2];
};

// sum + w . bytes, of four bytes with or without a sign.
template <bool kSigned>
KINGLET_HOST_DEVICE inline int32_t AddProducts(const FourShorts& w, uint32_t bytes, int32_t sum) {
#if KINGLET_CUDA_ON_DEVICE
  if constexpr (kSigned) {
    asm("dp2a.lo.s32.s32 %0, %1, %2, %0;" : "+r"(sum) : "r"(w.pairs[0]), "r"(bytes));
    asm("dp2a.hi.s32.s32 %0, %1, %2, %0;" : "+r"(sum) : "r"(w.pairs[1]), "r"(bytes));
  } else {
    asm("dp2a.lo.s32.u32 %0, %1, %2, %0;" : "+r"(sum) : "r"(w.pairs[0]), "r"(bytes));
    asm("dp2a.hi.s32.u32 %0, %1, %2, %0;" : "+r"(sum) : "r"(w.pairs[1]), "r"(bytes));
  }
  return sum;
#else
  auto total = static_cast<uint32_t>(sum);
  for (uint32_t i = 0; i < 4; ++i) {
    const int32_t number = static_cast<int16_t>(w.pairs[i / 2] >> (16 * (i % 2)));
    total += static_cast<uint32_t>(number * internal::ByteOf<kSigned>(bytes, i));
  }
  return static_cast<int32_t>(total);
#endif
}

// Codes in shared memory as bytes: all low ones, and all high ones.
struct Digits {
  uint8_t* low;
  uint8_t* high;

  // Takes memory for n codes.
  template <class Memory>
  KINGLET_HOST_DEVICE static Digits Take(Memory& memory, uint64_t n) {
    return {memory.template Take<uint8_t>(n), memory.template Take<uint8_t>(n)};
  }
  KINGLET_HOST_DEVICE void Set(uint32_t i, int32_t code) const {
    low[i] = static_cast<uint8_t>(code & 0xff);
    high[i] = static_cast<uint8_t>(code >> 8 & 0xff);
  }
};
// Eight of them.
struct EightDigits {
  uint32_t low[2], high[2];
  // `first` is a multiple of 8.
  KINGLET_HOST_DEVICE static EightDigits Load(const Digits& digits, uint32_t first) {
    EightDigits loaded;
    memcpy(loaded.low, __builtin_assume_aligned(digits.low + first, 8), 8);
    memcpy(loaded.high, __builtin_assume_aligned(digits.high + first, 8), 8);
    return loaded;
  }
};

// w . x. With kBytes all codes of x are from 0 to 255.
template <bool kBytes>
KINGLET_HOST_DEVICE inline int32_t Product(const EightShorts& w, const EightDigits& x) {
  int32_t low = AddProducts<false>(w.fours[0], x.low[0], 0);
  low = AddProducts<false>(w.fours[1], x.low[1], low);
  if constexpr (kBytes) return low;
  int32_t high = AddProducts<true>(w.fours[0], x.high[0], 0);
  high = AddProducts<true>(w.fours[1], x.high[1], high);
  return static_cast<int32_t>(static_cast<uint32_t>(low) + 256u * static_cast<uint32_t>(high));
}

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_SHORT_PRODUCTS_H_

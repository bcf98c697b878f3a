// Rows of 9-bit codes (kernels/nine_bit_row.h), as tiles of bytes that tensor cores multiply
// (byte_product.h). C++17.
#ifndef KINGLET_KERNELS_CUDA_NINE_BIT_TILES_H_
#define KINGLET_KERNELS_CUDA_NINE_BIT_TILES_H_

#include <cstdint>
#include <cstring>

#include "kernels/cuda/byte_matrix.h"
#include "kernels/cuda/byte_product.h"
#include "kernels/nine_bit_row.h"

namespace kinglet::cuda::internal {

// Block-wide: copies rows of a ring, from slot `first` on, to shared memory, which is aligned to 8
// bytes. Those before row `unfilled` become zeros, and are not read.
KINGLET_HOST_DEVICE inline void CopyRows(const Block& block, const NineBitRow& layout,
                                         const uint8_t* ring, uint32_t slots, uint32_t first,
                                         uint32_t unfilled, uint32_t rows, uint8_t* to) {
  struct alignas(8) Eight {
    uint8_t bytes[8];
  };
  const auto each = static_cast<uint32_t>(layout.Bytes() / sizeof(Eight));
  block.ForEach(uint64_t{rows} * each, [&](uint64_t i) {
    Eight eight{};
    const uint64_t at = uint64_t{first} * each + i, end = uint64_t{slots} * each;
    if (i >= uint64_t{unfilled} * each) {
      eight = LoadAligned<Eight>(ring + 8 * (at < end ? at : at - end));
    }
    memcpy(__builtin_assume_aligned(to + 8 * i, 8), &eight, sizeof eight);
  });
}

// By one thread of a warp: its part of columns [32 step, 32 step + 32) of 16 rows, as two tiles:
// code = low + 256 * sign, with signs 0 and -1. row_of(i) is row i < 16.
template <class RowOf>
KINGLET_HOST_DEVICE void LoadNineBitTile(const NineBitRow& layout, uint32_t step, uint32_t thread,
                                         const RowOf& row_of, TileA& low, TileA& signs) {
#if KINGLET_CUDA_ON_DEVICE
#pragma unroll
#endif
  for (uint32_t half = 0; half < 2; ++half) {
    const uint8_t* const row = row_of(thread / 4 + 8 * half);
    const uint32_t bits = LoadAligned<uint32_t>(row + layout.SignByte(uint64_t{step} * kTileDepth));
    for (uint32_t part = 0; part < 2; ++part) {
      const uint32_t column = 16 * part + thread % 4 * 4;
      low.registers[half + 2 * part] = LoadAligned<uint32_t>(row + step * kTileDepth + column);
      signs.registers[half + 2 * part] = SignBytes(bits >> column);
    }
  }
}

// Likewise for 32 columns from `first` on, a multiple of 8. Those from `columns` on are zeros.
template <class RowOf>
KINGLET_HOST_DEVICE void LoadNineBitPart(const NineBitRow& layout, uint32_t first, uint32_t columns,
                                         uint32_t thread, const RowOf& row_of, TileA& low,
                                         TileA& signs) {
#if KINGLET_CUDA_ON_DEVICE
#pragma unroll
#endif
  for (uint32_t half = 0; half < 2; ++half) {
    const uint8_t* const row = row_of(thread / 4 + 8 * half);
    for (uint32_t part = 0; part < 2; ++part) {
      const uint32_t at = 16 * part + thread % 4 * 4, column = first + at;
      const bool has = at < columns;
      low.registers[half + 2 * part] = has ? LoadAligned<uint32_t>(row + column) : 0;
      signs.registers[half + 2 * part] =
          has ? SignBytes(uint32_t{row[layout.SignByte(column)]} >> (column % 8)) : 0;
    }
  }
}

}  // namespace kinglet::cuda::internal

#endif  // KINGLET_KERNELS_CUDA_NINE_BIT_TILES_H_

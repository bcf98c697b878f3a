// Products of some rows of a quantised matrix with one vector of codes, by a thread block. C++17.
//
// On tensor cores only one of a tile's eight streams is used. That costs nothing where the rows
// are read for one lane alone: the time is that of reading them.
#ifndef KINGLET_KERNELS_CUDA_ROW_PRODUCTS_H_
#define KINGLET_KERNELS_CUDA_ROW_PRODUCTS_H_

#include <cstdint>

#include "kernels/cuda/product.h"

namespace kinglet::cuda::internal {

// Bytes of shared memory of one vector of `columns` codes (StreamBytes).
KINGLET_HOST_DEVICE constexpr uint64_t BytesOfVector(uint32_t columns) {
  return 2 * SharedMemory::Bytes<uint32_t>(PaddedColumns(columns, columns) / 4);
}
KINGLET_HOST_DEVICE inline StreamBytes TakeVector(SharedMemory& shared, uint32_t columns) {
  return {shared, 1, PaddedColumns(columns, columns)};
}

// Block-wide: use(i, y) with y of row first + i, for i < n. `x` has the product's vector, whose
// scale is `x_scale`. REQUIRES: `first` is a multiple of kTileRows, and the matrix has the rows.
template <class Use>
KINGLET_HOST_DEVICE void MultiplyRows(const Block& block, const IntegerProduct& product,
                                      const StreamBytes& x, float x_scale, uint32_t first,
                                      uint32_t n, const Use& use) {
  const ByteMatrix& matrix = product.matrix;
  if (matrix.narrow()) {
    NarrowVector narrow;
    for (uint32_t i = 0; i < kNarrowColumns; ++i) {
      narrow.floats[i] = i < matrix.cols ? static_cast<float>(x.Get(0, i)) : 0.0f;
    }
    block.ForEach(n, [&](uint64_t i) {
      const uint64_t row = first + i;
      const float sum = NarrowSum(product, NarrowRow::Load(matrix, row), narrow);
      use(static_cast<uint32_t>(i), FinishSum(product, sum, row, x_scale));
    });
    return;
  }
  constexpr uint32_t kAhead = 4;
  block.EachWarp([&](const Warp& warp) {
    for (uint32_t tile = warp.index(); tile * kTileRows < n; tile += block.warps()) {
      const uint64_t row_tile = first / kTileRows + tile;
      TileSums<1> sums{};
      // Both factors are treated as two planes, whatever their forms, so that the code is compiled
      // once.
      AddTileProducts<1, kAhead, false, false>(
          warp, matrix, row_tile * matrix.col_tiles(), {0, 1, matrix.col_tiles()}, x,
          [&](uint64_t at, uint32_t thread) { return LoadHigh(matrix, at, thread); },
          [](uint32_t, uint32_t) { return 0u; }, sums);
      warp.EachThread([&](uint32_t thread, uint32_t reg) {
        if (TileStream(thread, 0) != 0) return;
        for (uint32_t i = 0; i < 4; i += 2) {
          const uint32_t row = tile * kTileRows + TileRow(thread, i);
          if (row < n) use(row, ProductOf(product, sums.tiles[0][reg], i, first + row, x_scale));
        }
      });
    }
  });
}

}  // namespace kinglet::cuda::internal

#endif  // KINGLET_KERNELS_CUDA_ROW_PRODUCTS_H_

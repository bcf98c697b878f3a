// Products of a matrix with vectors of codes, in integers (rules 2 and 3 of docs/NUMERICS.md), on
// tensor cores. C++17.
//
// A matrix tile has 16 rows and 32 columns (byte_matrix.h), a stream tile is these 32 columns of
// the vectors of 8 streams. Matrix and vectors are one or two planes of bytes each, so a product of
// tiles is one, two or four products of bytes (byte_product.h), whose sums are multiplied by powers
// of 256 and added. All sums are exact integers, so their order does not matter: a row's result is
// one conversion to float, one multiplication by the two scales, and the bias.
//
// A work item has two stream tiles and some tiles of rows. If work items are few, several warps
// divide the columns of a tile of rows among themselves. Their partial sums are added in shared
// memory.
//
// A matrix of at most four columns (ByteForm::kNarrow) would leave most of a tile empty. For such a
// matrix a thread has a row, for all lanes of the work item.
//
// Shared memory: the vectors' planes, 512 columns of 16 lanes at a time; after the last columns the
// partial sums.
#ifndef KINGLET_KERNELS_CUDA_PRODUCT_H_
#define KINGLET_KERNELS_CUDA_PRODUCT_H_

#include <cstdint>

#include "kernels/cuda/byte_matrix.h"
#include "kernels/cuda/node.h"
#include "kernels/cuda/stream_bytes.h"

namespace kinglet::cuda {

// What is done with the product of a row: y = scale * product + bias, then ReLU if `relu`.
struct Finish {
  const float* bias = nullptr;  // [rows], or null
  bool relu = false;
  float scale = 1.0f;
  KINGLET_HOST_DEVICE float operator()(float value, uint64_t row) const {
    value *= scale;
    if (bias != nullptr) value += bias[row];
    return !relu || value > 0.0f ? value : 0.0f;
  }
};

// y[rows] = finish(matrix * x). A work item is some tiles of rows for 16 lanes.
struct IntegerProduct {
  ByteMatrix matrix;
  Vector x;          // codes, [cols]
  bool x_is_byte;    // every code of x fits a signed byte
  bool fits_int32;   // every sum fits 32 bits
  bool fits_float;   // every sum of a narrow matrix is at most 2^24, so floats add exactly
  bool fits_halves;  // and half precision has its integers (half_product.h)
  Finish finish;
  Place y;         // [rows] of floats
  bool quantises;  // also writes y's codes
  Place codes;     // [rows] of int16
  Rounding rounding;
  TokenRange tokens;

  static constexpr uint32_t kColumns = 512;  // of x that are in shared memory at a time
  static constexpr uint32_t kStreamTiles = 2;
  static constexpr uint32_t kStreams = kStreamTiles * kTileStreams;
  static constexpr uint32_t kNarrowRows = 512;  // of a work item
  // How many warps divide the columns of a tile of rows among themselves, a power of 2: as many as
  // possible without more work items than keep a device busy.
  static constexpr uint32_t kEnoughItems = 256;
  KINGLET_HOST_DEVICE static uint32_t WarpsOfTile(const ByteMatrix& matrix, uint32_t lanes,
                                                  uint32_t warps) {
    // Tiles of rows, each counted once for every work item's lanes.
    const uint32_t tiles = matrix.row_tiles() * DivideUp(lanes, uint32_t{kStreams});
    uint32_t tile_warps = warps;
    while (tile_warps > 1 &&
           (tile_warps > matrix.col_tiles() || tiles * tile_warps > kEnoughItems * warps)) {
      tile_warps /= 2;
    }
    return tile_warps;
  }
  // Work items of all rows: a work item has a tile of rows for every WarpsOfTile warps.
  KINGLET_HOST_DEVICE static uint32_t RowItems(const ByteMatrix& matrix, uint32_t lanes,
                                               uint32_t warps) {
    if (matrix.narrow()) return DivideUp(matrix.rows, uint32_t{kNarrowRows});
    const uint32_t tiles = warps / WarpsOfTile(matrix, lanes, warps);
    return DivideUp(matrix.row_tiles(), tiles);
  }
  // `warps`: a power of 2.
  KINGLET_HOST_DEVICE uint32_t WorkItems(uint32_t lanes, uint32_t warps) const {
    return DivideUp(lanes, uint32_t{kStreams}) * RowItems(matrix, lanes, warps);
  }
  // Bytes from one lane's row of a plane in shared memory to the next: 16 more than a multiple of
  // 128, so that the threads of a warp, which read 8 lanes, have no bank conflicts.
  KINGLET_HOST_DEVICE static constexpr uint64_t Stride(uint32_t columns) { return columns + 16; }
  // Partial sums of a tile of rows and a stream tile that a warp leaves in shared memory.
  static constexpr uint32_t kPartialSums = kTileRows * kTileStreams;
  // The sums replace the vectors.
  KINGLET_HOST_DEVICE static constexpr uint64_t SharedBytes() {
    const uint64_t vectors = 2 * kStreams * Stride(kColumns);
    const uint64_t sums =
        SharedMemory::Bytes<int64_t>(kMaxWarpsOfItem * kStreamTiles * kPartialSums);
    return vectors < sums ? sums : vectors;
  }
  static constexpr uint32_t kMaxWarpsOfItem = 8;
};

namespace internal {

// A thread's sums of a tile of rows and a stream tile. The sums of powers[k] count 256^k times.
struct PlaneSums {
  TileD powers[3];
};
template <uint32_t kStreamTiles>
struct TileSums {
  PerThread<PlaneSums> tiles[kStreamTiles];
};

// Calls f(bytes, bytes_x) with two compile-time constants: whether the matrix, and whether x, is
// one plane of signed bytes.
template <class F>
KINGLET_HOST_DEVICE void WithPlanes(bool is_byte, bool x_is_byte, const F& f) {
  constexpr std::true_type kYes;
  constexpr std::false_type kNo;
  if (is_byte) {
    if (x_is_byte) {
      f(kYes, kYes);
    } else {
      f(kYes, kNo);
    }
  } else if (x_is_byte) {
    f(kNo, kYes);
  } else {
    f(kNo, kNo);
  }
}

// By one warp: adds the product of a matrix tile and a stream tile. A factor is one signed plane,
// or two planes of which the low one is unsigned. Without `has_high_x` the high plane of x is
// zeros.
template <bool kBytes, bool kBytesX>
KINGLET_HOST_DEVICE inline void AddPlaneProducts(const Warp& warp, const PerThread<TileA>& low,
                                                 const PerThread<TileA>& high,
                                                 const PerThread<TileB>& low_x,
                                                 const PerThread<TileB>& high_x,
                                                 PerThread<PlaneSums>& sums,
                                                 bool has_high_x = true) {
  const auto add = [&](auto signed_a, auto signed_b, const PerThread<TileA>& a,
                       const PerThread<TileB>& b, uint32_t power) {
    PerThread<TileD> d;
    warp.EachThread([&](uint32_t, uint32_t reg) { d[reg] = sums[reg].powers[power]; });
    MultiplyTiles<decltype(signed_a)::value, decltype(signed_b)::value>(warp, a, b, d);
    warp.EachThread([&](uint32_t, uint32_t reg) { sums[reg].powers[power] = d[reg]; });
  };
  constexpr std::true_type kWithSign;
  add(std::bool_constant<kBytes>(), std::bool_constant<kBytesX>(), low, low_x, 0);
  if constexpr (!kBytes) add(kWithSign, std::bool_constant<kBytesX>(), high, low_x, 1);
  if (!has_high_x) return;
  if constexpr (!kBytesX) add(std::bool_constant<kBytes>(), kWithSign, low, high_x, 1);
  if constexpr (!kBytes && !kBytesX) add(kWithSign, kWithSign, high, high_x, 2);
}

// Column tiles first, first + every, ... below `end`.
struct ColumnTiles {
  uint32_t first, every, end;
};

// By one warp: adds the products of a tile of rows with stream tiles of x, over the column tiles
// that `tiles` names. `from` is the matrix tile of column tile 0. load_high(tile, thread) is
// LoadHigh of the matrix; stream_of(s, thread) is the stream of x that a thread loads for stream
// tile s. Loads of the next kAhead matrix tiles, which come from global memory, are in flight
// during the products. Without `has_high_x` the high plane of x is zeros, and is not read.
template <uint32_t kStreamTiles, uint32_t kAhead, bool kBytes, bool kBytesX, class LoadHighOf,
          class StreamOf>
KINGLET_HOST_DEVICE inline void AddTileProducts(const Warp& warp, const ByteMatrix& matrix,
                                                uint64_t from, const ColumnTiles& tiles,
                                                const StreamBytes& x, const LoadHighOf& load_high,
                                                const StreamOf& stream_of,
                                                TileSums<kStreamTiles>& sums,
                                                bool has_high_x = true) {
  struct Loaded {
    PerThread<TileA> low, high;
  };
  Loaded next[kAhead]{};
  const auto load = [&](uint32_t k, Loaded& to) {
    if (k >= tiles.end) return;
    warp.EachThread([&](uint32_t thread, uint32_t reg) {
      to.low[reg] = LoadLow(matrix, from + k, thread);
      if (!kBytes) to.high[reg] = load_high(from + k, thread);
    });
  };
  const auto multiply = [&](uint32_t k, const Loaded& of_matrix) {
    if (k >= tiles.end) return;
#if KINGLET_CUDA_ON_DEVICE
#pragma unroll
#endif
    for (uint32_t s = 0; s < kStreamTiles; ++s) {
      PerThread<TileB> low, high;
      warp.EachThread([&](uint32_t thread, uint32_t reg) {
        const uint32_t stream = stream_of(s, thread), column = k * kTileDepth;
        low[reg] = x.Load(x.low, stream, column, thread);
        if (!kBytesX && has_high_x) high[reg] = x.Load(x.high, stream, column, thread);
      });
      AddPlaneProducts<kBytes, kBytesX>(warp, of_matrix.low, of_matrix.high, low, high,
                                        sums.tiles[s], has_high_x);
    }
  };
  for (uint32_t u = 0; u < kAhead; ++u) load(tiles.first + u * tiles.every, next[u]);
  for (uint32_t k = tiles.first; k < tiles.end; k += kAhead * tiles.every) {
    Loaded now[kAhead];
    for (uint32_t u = 0; u < kAhead; ++u) now[u] = next[u];
    for (uint32_t u = 0; u < kAhead; ++u) load(k + (kAhead + u) * tiles.every, next[u]);
    for (uint32_t u = 0; u < kAhead; ++u) multiply(k + u * tiles.every, now[u]);
  }
}

// By one warp: adds the products of a tile of rows with stream tiles of an IntegerProduct. The
// matrix's form is tested once here, not once for every tile.
template <class StreamOf>
KINGLET_HOST_DEVICE inline void AddProductsOfItem(const Warp& warp, const IntegerProduct& p,
                                                  uint64_t from, const ColumnTiles& tiles,
                                                  const StreamBytes& x, const StreamOf& stream_of,
                                                  TileSums<IntegerProduct::kStreamTiles>& sums) {
  constexpr uint32_t kAhead = 2;
  const auto add = [&](auto form, auto bytes_x) {
    constexpr ByteForm kForm = decltype(form)::value;
    AddTileProducts<IntegerProduct::kStreamTiles, kAhead, kForm == ByteForm::kByte,
                    decltype(bytes_x)::value>(
        warp, p.matrix, from, tiles, x,
        [&](uint64_t tile, uint32_t thread) { return LoadHigh<kForm>(p.matrix, tile, thread); },
        stream_of, sums);
  };
  const auto with_form = [&](auto form) {
    p.x_is_byte ? add(form, std::true_type()) : add(form, std::false_type());
  };
  if (p.matrix.form == ByteForm::kByte) {
    with_form(std::integral_constant<ByteForm, ByteForm::kByte>());
  } else if (p.matrix.form == ByteForm::kSigned9) {
    with_form(std::integral_constant<ByteForm, ByteForm::kSigned9>());
  } else {
    with_form(std::integral_constant<ByteForm, ByteForm::kTwoBytes>());
  }
}

// By one warp: adds the products of a tile of rows with stream tiles of a ClusterProduct, from
// stream `first_stream` of x on, over the `padded` columns from `begin` on that x contains. The
// matrix's form is tested for every tile, which costs little compared with the products of several
// stream tiles.
template <uint32_t kStreamTiles, bool kBytes, bool kBytesX>
KINGLET_HOST_DEVICE inline void AddProductsOfCluster(const Warp& warp, const ByteMatrix& matrix,
                                                     uint32_t row_tile, uint32_t begin,
                                                     uint32_t padded, const StreamBytes& x,
                                                     uint32_t first_stream,
                                                     TileSums<kStreamTiles>& sums) {
  constexpr uint32_t kAhead = kStreamTiles == 1 ? 4 : 1;
  AddTileProducts<kStreamTiles, kAhead, kBytes, kBytesX>(
      warp, matrix, uint64_t{row_tile} * matrix.col_tiles() + begin / kTileDepth,
      {0, 1, padded / kTileDepth}, x,
      [&](uint64_t tile, uint32_t thread) { return LoadHigh(matrix, tile, thread); },
      [&](uint32_t s, uint32_t thread) { return first_stream + s * kTileStreams + thread / 4; },
      sums);
}

// Sum i of a thread: modulo 2^32, which is exact for sums that fit 32 bits even if the parts'
// multiples do not; or in 64 bits.
KINGLET_HOST_DEVICE inline int32_t SumModulo(const PlaneSums& sums, uint32_t i) {
  return static_cast<int32_t>(static_cast<uint32_t>(sums.powers[0].sums[i]) +
                              256u * static_cast<uint32_t>(sums.powers[1].sums[i]) +
                              65536u * static_cast<uint32_t>(sums.powers[2].sums[i]));
}
KINGLET_HOST_DEVICE inline int64_t SumInFull(const PlaneSums& sums, uint32_t i) {
  return int64_t{sums.powers[0].sums[i]} + int64_t{256} * sums.powers[1].sums[i] +
         int64_t{65536} * sums.powers[2].sums[i];
}

// y[row] of a lane from the sum of its integers,
KINGLET_HOST_DEVICE inline float FinishSum(const IntegerProduct& p, float sum, uint64_t row,
                                           float x_scale) {
  return p.finish(sum * (p.matrix.scales[row] * x_scale), row);
}
// or from sum i of a thread.
KINGLET_HOST_DEVICE inline float ProductOf(const IntegerProduct& p, const PlaneSums& sums,
                                           uint32_t i, uint64_t row, float x_scale) {
  const float sum = p.fits_int32 ? static_cast<float>(SumModulo(sums, i))
                                 : static_cast<float>(SumInFull(sums, i));
  return FinishSum(p, sum, row, x_scale);
}

// Whether the node works for any of these lanes.
KINGLET_HOST_DEVICE inline bool AnyTakesPart(const IntegerProduct& p, const Work& work,
                                             uint32_t first_lane, uint32_t lanes) {
  for (uint32_t s = 0; s < lanes; ++s) {
    if (p.tokens.Contains(work.lanes[first_lane + s].word)) return true;
  }
  return false;
}
KINGLET_HOST_DEVICE inline void StoreProduct(const IntegerProduct& p, const Work& work,
                                             const Lane& to, uint64_t row, float y) {
  work.At<float>(to, p.y)[row] = y;
  if (p.quantises) work.At<int16_t>(to, p.codes)[row] = p.rounding(y);
}

// x of a lane for a narrow matrix, in shared memory.
struct NarrowVector {
  float floats[kNarrowColumns];  // the codes; zeros beyond the matrix's columns
  float scale;

  KINGLET_HOST_DEVICE static NarrowVector Load(const IntegerProduct& p, const Work& work,
                                               const Lane& lane) {
    NarrowVector x;
    const int16_t* const codes = work.At<int16_t>(lane, p.x.place);
    for (uint32_t i = 0; i < kNarrowColumns; ++i) {
      x.floats[i] = i < p.matrix.cols ? static_cast<float>(codes[i]) : 0.0f;
    }
    x.scale = work.ScaleOf(lane, p.x);
    return x;
  }
};
// The sum of a row's products as a float: exact products and sums of floats if they all fit 24
// bits, else integers. The sum starts from +0, so that a sum of zeros of either sign is +0, as with
// integers.
KINGLET_HOST_DEVICE inline float NarrowSum(const IntegerProduct& p, const NarrowRow& row,
                                           const NarrowVector& x) {
  if (p.fits_float) {
    float sum = 0.0f;
    for (uint32_t i = 0; i < kNarrowColumns; ++i) {
      sum = fmaf(static_cast<float>(row.codes[i]), x.floats[i], sum);
    }
    return sum;
  }
  int64_t sum = 0;
  for (uint32_t i = 0; i < kNarrowColumns; ++i) {
    sum += int64_t{row.codes[i]} * static_cast<int32_t>(x.floats[i]);
  }
  return static_cast<float>(sum);
}

// A work item of a narrow matrix.
KINGLET_HOST_DEVICE inline void RunNarrow(const IntegerProduct& p, const Work& work) {
  const Block& block = work.block;
  const uint32_t row_items = IntegerProduct::RowItems(p.matrix, work.lane_count, block.warps());
  const uint32_t first_lane = work.item / row_items * IntegerProduct::kStreams;
  const uint32_t first_row = work.item % row_items * IntegerProduct::kNarrowRows;
  const uint32_t lanes = Least(work.lane_count - first_lane, uint32_t{IntegerProduct::kStreams});
  if (!AnyTakesPart(p, work, first_lane, lanes)) return;
  NarrowVector* const x = SharedMemory(block).Take<NarrowVector>(IntegerProduct::kStreams);
  block.ForEach(
      lanes, [&](uint64_t i) { x[i] = NarrowVector::Load(p, work, work.lanes[first_lane + i]); });
  const uint32_t rows = Least(p.matrix.rows - first_row, uint32_t{IntegerProduct::kNarrowRows});
  block.ForEach(rows, [&](uint64_t i) {
    const uint64_t row = first_row + i;
    const NarrowRow codes = NarrowRow::Load(p.matrix, row);
    for (uint32_t s = 0; s < lanes; ++s) {
      const Lane& to = work.lanes[first_lane + s];
      if (!p.tokens.Contains(to.word)) continue;
      StoreProduct(p, work, to, row, FinishSum(p, NarrowSum(p, codes, x[s]), row, x[s].scale));
    }
  });
}

// How many columns come next: at most `most` of those that are left, padded to full tiles.
KINGLET_HOST_DEVICE constexpr uint32_t PaddedColumns(uint32_t left, uint32_t most) {
  return DivideUp(Least(left, most), uint32_t{kTileDepth}) * kTileDepth;
}

// A work item of a matrix of tiles.
KINGLET_HOST_DEVICE inline void RunTiles(const IntegerProduct& p, const Work& work) {
  constexpr uint32_t kStreamTiles = IntegerProduct::kStreamTiles;
  constexpr uint32_t kColumns = IntegerProduct::kColumns;
  constexpr uint32_t kPartialSums = kStreamTiles * IntegerProduct::kPartialSums;
  const Block& block = work.block;
  const uint32_t cols = p.matrix.cols;
  const uint32_t row_items = IntegerProduct::RowItems(p.matrix, work.lane_count, block.warps());
  const uint32_t warps_of_tile =
      IntegerProduct::WarpsOfTile(p.matrix, work.lane_count, block.warps());
  const uint32_t tiles = block.warps() / warps_of_tile;
  const uint32_t first_lane = work.item / row_items * IntegerProduct::kStreams;
  const uint32_t lanes = Least(work.lane_count - first_lane, uint32_t{IntegerProduct::kStreams});
  const uint32_t first_tile = work.item % row_items * tiles;
  if (!AnyTakesPart(p, work, first_lane, lanes)) return;

  SharedMemory shared(block);
  const StreamBytes x(shared, IntegerProduct::kStreams, IntegerProduct::Stride(kColumns));
  PerWarp<TileSums<kStreamTiles>> sums;
  for (uint32_t begin = 0; begin < cols; begin += kColumns) {
    const uint32_t padded = PaddedColumns(cols - begin, kColumns);
    StageStreams(work, p.x, p.x_is_byte, first_lane, lanes, begin, cols, padded, x);
    block.EachWarp([&](const Warp& warp) {
      const uint32_t row_tile = first_tile + warp.index() / warps_of_tile;
      if (row_tile >= p.matrix.row_tiles()) return;
      const ColumnTiles own = {warp.index() % warps_of_tile, warps_of_tile, padded / kTileDepth};
      // Streams beyond the lanes repeat the last lane. Their products are never read.
      const auto stream_of = [&](uint32_t s, uint32_t thread) {
        return Least(s * kTileStreams + thread / 4, lanes - 1);
      };
      const uint64_t from = uint64_t{row_tile} * p.matrix.col_tiles() + begin / kTileDepth;
      AddProductsOfItem(warp, p, from, own, x, stream_of, sums[warp]);
    });
  }

  // All warps have read x.
  int64_t* const partial = SharedMemory(block).Take<int64_t>(block.warps() * kPartialSums);
  block.EachWarp([&](const Warp& warp) {
    int64_t* const to = partial + warp.index() * kPartialSums;
    warp.EachThread([&](uint32_t thread, uint32_t reg) {
      for (uint32_t s = 0; s < kStreamTiles; ++s) {
        const PlaneSums& own = sums[warp].tiles[s][reg];
        for (uint32_t i = 0; i < 4; ++i) {
          to[(s * kTileStreams + TileStream(thread, i)) * kTileRows + TileRow(thread, i)] =
              p.fits_int32 ? SumModulo(own, i) : SumInFull(own, i);
        }
      }
    });
  });
  block.ForEach(uint64_t{tiles} * lanes * kTileRows, [&](uint64_t item) {
    const auto i = static_cast<uint32_t>(item);
    const uint32_t tile = i / kTileRows % tiles, stream = i / kTileRows / tiles;
    const uint64_t row = uint64_t{first_tile + tile} * kTileRows + i % kTileRows;
    const Lane& to = work.lanes[first_lane + stream];
    if (row >= p.matrix.rows || !p.tokens.Contains(to.word)) return;
    const uint32_t at = stream * kTileRows + i % kTileRows;
    int64_t sum = 0;
    for (uint32_t w = 0; w < warps_of_tile; ++w) {
      sum += partial[(tile * warps_of_tile + w) * kPartialSums + at];
    }
    const float real = p.fits_int32
                           ? static_cast<float>(static_cast<int32_t>(static_cast<uint32_t>(sum)))
                           : static_cast<float>(sum);
    StoreProduct(p, work, to, row, FinishSum(p, real, row, work.ScaleOf(to, p.x)));
  });
}

}  // namespace internal

KINGLET_HOST_DEVICE inline void Run(const IntegerProduct& p, const Work& work) {
  p.matrix.narrow() ? internal::RunNarrow(p, work) : internal::RunTiles(p, work);
}

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_PRODUCT_H_

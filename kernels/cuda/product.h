// Products of matrices with vectors: rules 2 to 4 of docs/NUMERICS.md. C++17.
#ifndef KINGLET_KERNELS_CUDA_PRODUCT_H_
#define KINGLET_KERNELS_CUDA_PRODUCT_H_

#include <cstdint>

#include "kernels/cuda/byte_matrix.h"
#include "kernels/cuda/step.h"
#include "kernels/cuda/sums.h"

namespace kinglet::cuda {

// What a row's product becomes on its way to y.
struct Finish {
  const float* bias = nullptr;  // [rows], or null
  bool rectify = false;
  float scale = 1.0f;  // multiplies the product
  KINGLET_HOST_DEVICE float operator()(float value, uint64_t row) const {
    value *= scale;
    if (bias != nullptr) value += bias[row];
    return !rectify || value > 0.0f ? value : 0.0f;
  }
};

// y[rows] = matrix * x of integers, exact sums. Each unit is some rows for up to kTileStreams *
// stream_tiles lanes, whose weights are read once.
struct IntegerProduct {
  ByteMatrix matrix;
  Vector x;         // codes, [cols]
  bool x_is_byte;   // each fits a signed byte
  bool fits_int32;  // every sum
  Finish finish;
  Place y;  // [rows] of reals
  // y's codes besides, at `codes`.
  bool quantises;
  Place codes;  // [rows] of int16
  Rounding rounding;
  TokenRange tokens;

  static constexpr uint32_t kColumns = 1024;       // of x in shared memory at a time,
  static constexpr uint32_t kColumnsOfMany = 256;  // or so many of many lanes
  static constexpr uint32_t kMostStreamTiles = 8;
  static constexpr uint32_t kAloneFromLanes = kTileStreams + 1;
  // Rows of a unit: one tile for each warp.
  KINGLET_HOST_DEVICE static uint32_t RowUnits(const ByteMatrix& matrix, uint32_t warps) {
    return (matrix.row_tiles() + warps - 1) / warps;
  }
  KINGLET_HOST_DEVICE static uint32_t StreamTiles(uint32_t lanes) {
    return lanes > kTileStreams ? kMostStreamTiles : 1;
  }
  KINGLET_HOST_DEVICE uint32_t Units(uint32_t lanes, uint32_t warps) const {
    const uint32_t together = StreamTiles(lanes) * kTileStreams;
    return (lanes + together - 1) / together * RowUnits(matrix, warps);
  }
  // Bytes between the planes' rows of two lanes in shared memory: 16 more than a multiple of 128,
  // so that a warp's reads of 8 lanes meet no bank twice.
  KINGLET_HOST_DEVICE static constexpr uint64_t Stride(uint32_t columns) { return columns + 16; }
  KINGLET_HOST_DEVICE static constexpr uint64_t SharedBytes() {
    const uint64_t few = kTileStreams * Stride(kColumns);
    const uint64_t many = kMostStreamTiles * kTileStreams * Stride(kColumnsOfMany);
    return 2 * (few < many ? many : few);
  }
};

namespace internal {

// Sums of one tile of rows and one of streams, by the power of 256 that they are to be multiplied
// with.
struct PlaneSums {
  TileD powers[3];
};
template <uint32_t kStreamTiles>
struct TileSums {
  PerLane<PlaneSums> tiles[kStreamTiles];
};

// Columns of x of some lanes in shared memory as two planes of bytes, x = 256 high + low with low
// unsigned; or, where all codes are bytes, low alone, signed.
struct StreamBytes {
  uint8_t* low;
  uint8_t* high;
  uint64_t stride;  // bytes from lane to lane

  // The tile of lanes first .. first + 7 from `column` on.
  KINGLET_HOST_DEVICE TileB Load(const uint8_t* plane, uint32_t first, uint32_t column,
                                 uint32_t lane) const {
    TileB words;
    const uint8_t* from = plane + (first + lane / 4) * stride + column + lane % 4 * 4;
    memcpy(&words.words[0], __builtin_assume_aligned(from, 4), 4);
    memcpy(&words.words[1], __builtin_assume_aligned(from + 16, 4), 4);
    return words;
  }
};

// A section: columns [begin, begin + padded) of x of the lanes from `first` on to shared memory.
// Columns beyond `cols` and lanes beyond `lanes` are zeros.
template <bool kBytesX>
KINGLET_HOST_DEVICE void StageStreams(const Work& work, const Vector& x, uint32_t first,
                                      uint32_t lanes, uint32_t streams, uint32_t begin,
                                      uint32_t cols, uint32_t padded, const StreamBytes& to) {
  work.block.ForEach(uint64_t{streams} * padded, [&](uint64_t i) {
    const uint64_t lane = i / padded, column = i % padded;
    int32_t code = 0;
    if (lane < lanes && begin + column < cols) {
      code = work.At<int16_t>(work.lanes[first + lane], x.place)[begin + column];
    }
    to.low[lane * to.stride + column] = static_cast<uint8_t>(code);
    if (!kBytesX) to.high[lane * to.stride + column] = static_cast<uint8_t>(code >> 8);
  });
}

// Calls f(bytes, bytes_x), two constants: whether the matrix, and x, have a plane of signed bytes
// alone.
template <class F>
KINGLET_HOST_DEVICE void WithForms(ByteForm form, bool x_is_byte, const F& f) {
  constexpr std::true_type kYes;
  constexpr std::false_type kNo;
  if (form == ByteForm::kByte) {
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

// One tile of rows with one of streams. Where a factor has two planes, its low one is unsigned.
template <bool kBytes, bool kBytesX>
KINGLET_HOST_DEVICE inline void AddPlaneProducts(const Warp& warp, const PerLane<TileA>& low,
                                                 const PerLane<TileA>& high,
                                                 const PerLane<TileB>& low_x,
                                                 const PerLane<TileB>& high_x,
                                                 PerLane<PlaneSums>& sums) {
  const auto add = [&](auto signed_a, auto signed_b, const PerLane<TileA>& a,
                       const PerLane<TileB>& b, uint32_t power) {
    PerLane<TileD> d;
    warp.EachLane([&](uint32_t, uint32_t slot) { d[slot] = sums[slot].powers[power]; });
    MultiplyTiles<decltype(signed_a)::value, decltype(signed_b)::value>(warp, a, b, d);
    warp.EachLane([&](uint32_t, uint32_t slot) { sums[slot].powers[power] = d[slot]; });
  };
  constexpr std::true_type kWithSign;
  add(std::bool_constant<kBytes>(), std::bool_constant<kBytesX>(), low, low_x, 0);
  if constexpr (!kBytes) add(kWithSign, std::bool_constant<kBytesX>(), high, low_x, 1);
  if constexpr (!kBytesX) add(std::bool_constant<kBytes>(), kWithSign, low, high_x, 1);
  if constexpr (!kBytes && !kBytesX) add(kWithSign, kWithSign, high, high_x, 2);
}

// Adds the products of a tile of rows with columns [begin, begin + padded), which x holds.
template <uint32_t kStreamTiles, bool kBytes, bool kBytesX>
KINGLET_HOST_DEVICE inline void AddTileProducts(const Warp& warp, const ByteMatrix& matrix,
                                                uint32_t row_tile, uint32_t begin, uint32_t padded,
                                                const StreamBytes& x,
                                                TileSums<kStreamTiles>& sums) {
  for (uint32_t column = 0; column < padded; column += kTileDepth) {
    const uint64_t tile = uint64_t{row_tile} * matrix.col_tiles() + (begin + column) / kTileDepth;
    PerLane<TileA> low, high;
    warp.EachLane([&](uint32_t lane, uint32_t slot) {
      low[slot] = LoadLow(matrix, tile, lane);
      if (!kBytes) high[slot] = LoadHigh(matrix, tile, lane);
    });
#if KINGLET_CUDA_ON_DEVICE
#pragma unroll
#endif
    for (uint32_t s = 0; s < kStreamTiles; ++s) {
      PerLane<TileB> low_x, high_x;
      warp.EachLane([&](uint32_t lane, uint32_t slot) {
        low_x[slot] = x.Load(x.low, s * kTileStreams, column, lane);
        if (!kBytesX) high_x[slot] = x.Load(x.high, s * kTileStreams, column, lane);
      });
      AddPlaneProducts<kBytes, kBytesX>(warp, low, high, low_x, high_x, sums.tiles[s]);
    }
  }
}

// What row `row` of the product is for a lane, from sum i of one of its threads' sums.
KINGLET_HOST_DEVICE inline float ProductOf(const IntegerProduct& p, const PlaneSums& sums,
                                           uint32_t i, uint64_t row, float x_step) {
  float sum;
  if (p.fits_int32) {  // whatever the parts do, the whole is right modulo 2^32
    sum = static_cast<float>(
        static_cast<int32_t>(static_cast<uint32_t>(sums.powers[0].sums[i]) +
                             256u * static_cast<uint32_t>(sums.powers[1].sums[i]) +
                             65536u * static_cast<uint32_t>(sums.powers[2].sums[i])));
  } else {
    sum =
        static_cast<float>(int64_t{sums.powers[0].sums[i]} + int64_t{256} * sums.powers[1].sums[i] +
                           int64_t{65536} * sums.powers[2].sums[i]);
  }
  return p.finish(sum * (p.matrix.scales[row] * x_step), row);
}

template <uint32_t kStreamTiles, bool kBytes, bool kBytesX>
KINGLET_HOST_DEVICE void RunProduct(const IntegerProduct& p, const Work& work) {
  constexpr uint32_t kColumns =
      kStreamTiles == 1 ? IntegerProduct::kColumns : IntegerProduct::kColumnsOfMany;
  constexpr uint32_t kStreams = kStreamTiles * kTileStreams;
  const Block& block = work.block;
  const uint32_t row_units = IntegerProduct::RowUnits(p.matrix, block.warps());
  const uint32_t first_lane = work.unit / row_units * kStreams;
  const uint32_t first_tile = work.unit % row_units * block.warps();
  const uint32_t lanes =
      work.lane_count - first_lane < kStreams ? work.lane_count - first_lane : kStreams;
  bool any = false;
  for (uint32_t s = 0; s < lanes && !any; ++s) {
    any = p.tokens.Contains(work.lanes[first_lane + s].token);
  }
  if (!any) return;

  constexpr uint64_t kStride = IntegerProduct::Stride(kColumns);
  SharedMemory shared(block);
  StreamBytes x{};
  x.low = shared.Take<uint8_t>(kStreams * kStride);
  x.high = shared.Take<uint8_t>(kStreams * kStride);
  x.stride = kStride;
  PerWarp<TileSums<kStreamTiles>> sums;

  for (uint32_t begin = 0; begin < p.matrix.cols; begin += kColumns) {
    const uint32_t left = p.matrix.cols - begin;
    const uint32_t padded =
        ((left < kColumns ? left : kColumns) + kTileDepth - 1) / kTileDepth * kTileDepth;
    StageStreams<kBytesX>(work, p.x, first_lane, lanes, kStreams, begin, p.matrix.cols, padded, x);
    block.EachWarp([&](const Warp& warp) {
      const uint32_t row_tile = first_tile + warp.index();
      if (row_tile >= p.matrix.row_tiles()) return;
      AddTileProducts<kStreamTiles, kBytes, kBytesX>(warp, p.matrix, row_tile, begin, padded, x,
                                                     sums[warp]);
    });
  }

  block.EachWarp([&](const Warp& warp) {
    const uint32_t row_tile = first_tile + warp.index();
    if (row_tile >= p.matrix.row_tiles()) return;
#if KINGLET_CUDA_ON_DEVICE
#pragma unroll
#endif
    for (uint32_t s = 0; s < kStreamTiles; ++s) {
      warp.EachLane([&](uint32_t lane, uint32_t slot) {
        for (uint32_t i = 0; i < 4; ++i) {
          const uint64_t row = uint64_t{row_tile} * kTileRows + TileRow(lane, i);
          const uint32_t stream = s * kTileStreams + TileStream(lane, i);
          if (row >= p.matrix.rows || stream >= lanes) continue;
          const Lane& to = work.lanes[first_lane + stream];
          if (!p.tokens.Contains(to.token)) continue;
          const float y = ProductOf(p, sums[warp].tiles[s][slot], i, row, work.StepOf(to, p.x));
          work.At<float>(to, p.y)[row] = y;
          if (p.quantises) work.At<int16_t>(to, p.codes)[row] = p.rounding(y);
        }
      });
    }
  });
}

template <uint32_t kStreamTiles>
KINGLET_HOST_DEVICE void RunProductOf(const IntegerProduct& p, const Work& work) {
  WithForms(p.matrix.form, p.x_is_byte, [&](auto bytes, auto bytes_x) {
    RunProduct<kStreamTiles, decltype(bytes)::value, decltype(bytes_x)::value>(p, work);
  });
}

}  // namespace internal

KINGLET_HOST_DEVICE inline void RunForFewLanes(const IntegerProduct& p, const Work& work) {
  internal::RunProductOf<1>(p, work);
}
// For more lanes than a tile has.
KINGLET_HOST_DEVICE inline void Run(const IntegerProduct& p, const Work& work) {
  internal::RunProductOf<IntegerProduct::kMostStreamTiles>(p, work);
}

// The 15-bit fixed point of a vector (rule 2): codes, and the step of its own.
struct FixedPoint : ByLane {
  Place x;  // [count] of reals
  uint32_t count;
  Place codes;  // [count] of int16
  Place step;   // [1] of reals

  KINGLET_HOST_DEVICE uint64_t SharedBytes() const {
    return SharedMemory::Bytes<float>(kMostParts);
  }
  static constexpr uint32_t kMostParts = 256;
};

KINGLET_HOST_DEVICE inline void Run(const FixedPoint& p, const Work& work) {
  constexpr float kLimit = 16383.0f;
  const Lane& lane = work.lanes[work.unit];
  const float* x = work.At<float>(lane, p.x);
  float* const largest = SharedMemory(work.block).Take<float>(FixedPoint::kMostParts);
  work.block.ForEach(FixedPoint::kMostParts, [&](uint64_t part) {
    float most = 0.0f;
    for (uint64_t i = part; i < p.count; i += FixedPoint::kMostParts) {
      const float magnitude = fabsf(x[i]);
      most = magnitude > most ? magnitude : most;
    }
    largest[part] = most;
  });
  for (uint32_t apart = FixedPoint::kMostParts / 2; apart > 0; apart /= 2) {
    work.block.ForEach(apart, [&](uint64_t i) {
      largest[i] = largest[i + apart] > largest[i] ? largest[i + apart] : largest[i];
    });
  }
  const float step = largest[0] / kLimit;
  int16_t* codes = work.At<int16_t>(lane, p.codes);
  work.block.ForEach(p.count, [&](uint64_t i) {
    if (i == 0) *work.At<float>(lane, p.step) = step == 0.0f ? 1.0f : step;
    if (step == 0.0f) {
      codes[i] = 0;
      return;
    }
    const float q = x[i] / step;
    const float clamped = q >= -kLimit ? (q <= kLimit ? q : kLimit) : -kLimit;
    codes[i] = static_cast<int16_t>(rintf(clamped));
  });
}

// y[rows] = matrix * x in floats (rule 4). Each unit is some rows of one lane.
struct RealProduct {
  const float* matrix = nullptr;  // [rows, cols]
  uint32_t rows = 0, cols = 0;
  Vector x;
  Finish finish;
  Place y;
  TokenRange tokens;

  // Half a warp for each row.
  KINGLET_HOST_DEVICE uint32_t RowUnits(uint32_t warps) const {
    return (rows + 2 * warps - 1) / (2 * warps);
  }
  KINGLET_HOST_DEVICE uint32_t Units(uint32_t lanes, uint32_t warps) const {
    return lanes * RowUnits(warps);
  }
  KINGLET_HOST_DEVICE uint64_t SharedBytes() const { return 0; }
};

// Sums of `cols` terms of rows `first` and `first` + 1 below `rows`, each by half of the warp:
// term(partial, row, i) adds term i to a partial sum, use(row, sum) is called once.
template <class Term, class Use>
KINGLET_HOST_DEVICE void TwoRowSums(const Warp& warp, uint64_t first, uint64_t rows, uint64_t cols,
                                    const Term& term, const Use& use) {
  const auto row_of = [&](uint32_t thread) { return first + thread / kSumLanes; };
  PerLane<RunningFold> totals{};
  for (uint64_t begin = 0; begin < cols; begin += kSumBlock) {
    const uint64_t end = cols - begin < kSumBlock ? cols : begin + kSumBlock;
    PerLane<float> chains;
    warp.EachLane([&](uint32_t thread, uint32_t slot) {
      chains[slot] = 0.0f;
      const uint64_t row = row_of(thread);
      if (row >= rows) return;
      if (cols < kShortSum && thread % kSumLanes != 0) return;
      const uint32_t stride = cols < kShortSum ? 1 : kSumLanes;
      for (uint64_t i = begin + thread % kSumLanes; i < end; i += stride) {
        chains[slot] = term(chains[slot], row, i);
      }
    });
    // A short sum is its first chain as it is.
    for (uint32_t apart = cols < kShortSum ? 0 : kSumLanes / 2; apart > 0; apart /= 2) {
      const PerLane<float> other = warp.Exchanged(chains, apart);
      warp.EachLane([&](uint32_t, uint32_t slot) { chains[slot] += other[slot]; });
    }
    warp.EachLane([&](uint32_t, uint32_t slot) { totals[slot].Push(chains[slot]); });
  }
  warp.EachLane([&](uint32_t thread, uint32_t slot) {
    if (thread % kSumLanes != 0 || row_of(thread) >= rows) return;
    use(row_of(thread), totals[slot].Total());
  });
}

KINGLET_HOST_DEVICE inline void Run(const RealProduct& p, const Work& work) {
  const LaneUnit unit(work, p.RowUnits(work.block.warps()));
  const Lane& lane = work.lanes[unit.lane];
  if (!p.tokens.Contains(lane.token)) return;
  work.block.EachWarp([&](const Warp& warp) {
    const uint64_t first = (uint64_t{unit.part} * work.block.warps() + warp.index()) * 2;
    TwoRowSums(
        warp, first, p.rows, p.cols,
        [&](float sum, uint64_t row, uint64_t i) {
          return fmaf(p.matrix[row * p.cols + i], work.Real(lane, p.x, i), sum);
        },
        [&](uint64_t row, float sum) { work.At<float>(lane, p.y)[row] = p.finish(sum, row); });
  });
}

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_PRODUCT_H_

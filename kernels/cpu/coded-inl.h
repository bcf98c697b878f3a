// Sums of partial products of coded tables.
#if defined(KINGLET_KERNELS_CPU_CODED_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KINGLET_KERNELS_CPU_CODED_INL_H_
#undef KINGLET_KERNELS_CPU_CODED_INL_H_
#else
#define KINGLET_KERNELS_CPU_CODED_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"
#include "kernels/cpu/finish-inl.h"
#include "kernels/cpu/order-inl.h"
#include "kernels/cpu/vector.h"

HWY_BEFORE_NAMESPACE();
namespace kinglet::cpu::HWY_NAMESPACE {

// How many tiles of rows are processed together, position by position, so that a position's
// partial products stay in the second-level cache.
constexpr size_t kTilesTogether = 128;

// The codes of kWidth rows, from bit `bit` of their columns on (CodeTiles).
HWY_INLINE hn::Vec<hn::RebindToSigned<Floats>> UnpackCodes(const uint32_t* streams, size_t bit,
                                                           int bits) {
  const hn::RebindToUnsigned<Floats> d32;
  const uint32_t* at = streams + bit / 32 * kPanelRows;
  const int shift = static_cast<int>(bit % 32);
  auto codes = hn::ShiftRightSame(hn::Load(d32, at), shift);
  if (shift + bits > 32) {
    codes = hn::Or(codes, hn::ShiftLeftSame(hn::Load(d32, at + kPanelRows), 32 - shift));
  }
  const auto mask = hn::Set(d32, static_cast<uint32_t>((uint64_t{1} << bits) - 1));
  return hn::BitCast(hn::RebindToSigned<Floats>(), hn::And(codes, mask));
}

// Adds the partial products of one position to the sums of one tile's rows in y; position 0 sets
// the sums. `tail` has the sums of rows beyond the last full panel.
HWY_INLINE void AddPosition(const CodeTiles& codes, size_t tile, size_t position,
                            const float* partial, float divisor, const Finish& finish, float* y,
                            float* tail) {
  const Floats d;
  const uint32_t* streams = codes.codes + (tile * codes.positions + position) *
                                              static_cast<size_t>(codes.bits) * kPanelRows;
  const size_t first = tile * kCodeTileRows;
  const size_t end = std::min<size_t>(codes.rows, first + kCodeTileRows);
  const bool is_last = position + 1 == codes.positions;
  size_t bit = 0;
  for (size_t row = first; row < end; row += kPanelRows) {
    float* sums = row + kPanelRows <= codes.rows ? y + row : tail;
    for (size_t column = 0; column < kPanelRows; column += kWidth) {
      auto sum = hn::GatherIndex(d, partial, UnpackCodes(streams + column, bit, codes.bits));
      if (position != 0) sum = hn::Add(hn::LoadU(d, sums + column), sum);
      if (!is_last) {
        hn::StoreU(sum, d, sums + column);
        continue;
      }
      if (divisor != 1.0f) sum = hn::Div(sum, hn::Set(d, divisor));
      FinishRows(finish, sum, row + column, codes.rows, y);
    }
    bit += static_cast<size_t>(codes.bits);
  }
}

void CodedSums(const CodeTiles& codes, const uint64_t* firsts, const float* partial, float divisor,
               const Finish& finish, float* y) {
  const size_t tiles = (codes.rows + kCodeTileRows - 1) / kCodeTileRows;
  alignas(64) float tail[kPanelRows] = {};
  for (size_t begin = 0; begin < tiles; begin += kTilesTogether) {
    const size_t end = std::min(tiles, begin + kTilesTogether);
    for (size_t position = 0; position < codes.positions; ++position) {
      for (size_t tile = begin; tile < end; ++tile) {
        AddPosition(codes, tile, position, partial + firsts[position], divisor, finish, y, tail);
      }
    }
  }
}

}  // namespace kinglet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // KINGLET_KERNELS_CPU_CODED_INL_H_

// Writes integer weights from the file's rows to panels.
#if defined(KINGLET_KERNELS_CPU_PANELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KINGLET_KERNELS_CPU_PANELS_INL_H_
#undef KINGLET_KERNELS_CPU_PANELS_INL_H_
#else
#define KINGLET_KERNELS_CPU_PANELS_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/cpu/highway-inl.h"
#include "kernels/cpu/tile_codes-inl.h"
#include "kernels/cpu/vector.h"

HWY_BEFORE_NAMESPACE();
namespace kinglet::cpu::HWY_NAMESPACE {
// For each byte of a mask: where the bytes of eight 16-bit results come from, and how many of the
// results are stored codes. An index of 0x80 gives zero.
struct SpreadTables {
  alignas(16) uint8_t sources[256][16];
  uint8_t counts[256];
};
constexpr SpreadTables MakeSpreadTables() {
  SpreadTables tables = {};
  for (unsigned byte = 0; byte < 256; ++byte) {
    uint8_t next = 0;
    for (unsigned i = 0; i < 8; ++i) {
      const bool kept = (byte >> i & 1) != 0;
      tables.sources[byte][2 * i] = kept ? static_cast<uint8_t>(2 * next) : 0x80;
      tables.sources[byte][2 * i + 1] = kept ? static_cast<uint8_t>(2 * next + 1) : 0x80;
      if (kept) ++next;
    }
    tables.counts[byte] = next;
  }
  return tables;
}
constexpr SpreadTables kSpread = MakeSpreadTables();

void SpreadCodes(const std::byte* mask, uint64_t first, size_t n, const int16_t* stored,
                 int16_t* out) {
  const hn::FixedTag<int16_t, 8> d;
  const hn::FixedTag<uint8_t, 16> bytes;
  const auto shift = static_cast<unsigned>(first % 8);
  const std::byte* at = mask + first / 8;
  for (size_t i = 0; i < n; i += 8, ++at) {
    // The next byte is read only if some of its bits are needed.
    unsigned kept = std::to_integer<unsigned>(*at) >> shift;
    const size_t wanted = std::min<size_t>(n - i, 8);
    if (wanted > 8 - shift) kept |= std::to_integer<unsigned>(at[1]) << (8 - shift);
    kept &= 0xFFu >> (8 - wanted);
    const auto codes = hn::BitCast(bytes, hn::LoadU(d, stored));
    const auto spread = hn::TableLookupBytesOr0(codes, hn::Load(bytes, kSpread.sources[kept]));
    hn::StoreU(hn::BitCast(d, spread), d, out + i);
    stored += kSpread.counts[kept];
  }
}

// Four groups of four bits, each in the low half of a byte of its own.
inline uint64_t SpreadNibbles(uint64_t bits) {
  return (bits & 0xF) | (bits & 0xF0) << 4 | (bits & 0xF00) << 8 | (bits & 0xF000) << 12;
}

void InterleaveCodes(const int16_t* codes, size_t cols, std::byte* tiles, uint64_t* signs) {
  const hn::FixedTag<uint8_t, 16> bytes;
  const hn::FixedTag<uint64_t, 2> rows;
  // The first two columns of four rows, then their last two.
  alignas(16) constexpr uint8_t kOrder[16] = {0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15};
  const auto order = hn::Load(bytes, kOrder);
  // Byte 0 of every four, then their byte 1.
  alignas(16) constexpr uint8_t kColumns[16] = {0, 4, 8,  12, 1, 5, 9,  13,
                                                2, 6, 10, 14, 3, 7, 11, 15};
  [[maybe_unused]] const auto columns = hn::Load(bytes, kColumns);
  for (size_t col = 0; col < cols; col += 4, tiles += kTileBytes) {
    const size_t unused = col + 4 > cols ? col + 4 - cols : 0;
    const auto used = hn::Set(rows, ~uint64_t{0} >> (16 * unused));
    uint64_t tile_signs = 0;
    for (size_t r = 0; r < kPanelRows; r += 4) {
      uint64_t row_codes[4];  // a row's four codes each
      for (size_t i = 0; i < 4; ++i) std::memcpy(&row_codes[i], codes + (r + i) * cols + col, 8);
      const auto first = hn::BitCast(bytes, hn::And(hn::LoadU(rows, row_codes), used));
      const auto second = hn::BitCast(bytes, hn::And(hn::LoadU(rows, row_codes + 2), used));
      const auto low = hn::TableLookupBytes(hn::ConcatEven(bytes, second, first), order);
      const auto high = hn::TableLookupBytes(hn::ConcatOdd(bytes, second, first), order);
      hn::StoreU(low, bytes, reinterpret_cast<uint8_t*>(tiles) + r * 4);
      uint8_t bits[8] = {};
      const hn::FixedTag<int8_t, 16> integers;
      const auto in_order = kSignsByColumn ? hn::TableLookupBytes(high, columns) : high;
      const auto negative = hn::Lt(hn::BitCast(integers, in_order), hn::Zero(integers));
      hn::StoreMaskBits(integers, negative, bits);
      const uint64_t of_rows = uint64_t{bits[0]} | uint64_t{bits[1]} << 8;
      tile_signs |=
          kSignsByColumn ? SpreadNibbles(of_rows) << (r / 8 * 32 + r % 8) : of_rows << (r * 4);
    }
    if (signs != nullptr) *signs++ = tile_signs;
  }
}

}  // namespace kinglet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // KINGLET_KERNELS_CPU_PANELS_INL_H_

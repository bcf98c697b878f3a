// Reads integer weights from panels.
#if defined(KINGLET_KERNELS_CPU_TILE_CODES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KINGLET_KERNELS_CPU_TILE_CODES_INL_H_
#undef KINGLET_KERNELS_CPU_TILE_CODES_INL_H_
#else
#define KINGLET_KERNELS_CPU_TILE_CODES_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "kernels/cpu/highway-inl.h"
#include "kernels/cpu/order-inl.h"
#include "kernels/cpu/vector.h"

HWY_BEFORE_NAMESPACE();
namespace kinglet::cpu::HWY_NAMESPACE {

using Sums = hn::CappedTag<int32_t, kPanelRows>;
using Codes = hn::Repartition<int16_t, Sums>;

// VectorFunctions::sign_place. AVX2 and WebAssembly have no bit masks. There, in each 32 bits of
// signs, bit 8 p + l is the sign of entry 4 l + p. Copies of the 32 bits for every four entries, a
// selection of one bit a byte and a comparison spread them.
inline constexpr bool kSignsByColumn = HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_WASM;
inline size_t SignPlace(size_t entry) {
  return kSignsByColumn ? entry / 32 * 32 + entry % 4 * 8 + entry % 32 / 4 : entry;
}

// Bytes of 0xFF for the entries whose signs are set, kWidth rows of them from `row` on.
template <class D8>
HWY_INLINE hn::Vec<D8> SpreadSigns(D8 d8, const uint64_t* signs, size_t row) {
  const auto* const bytes = reinterpret_cast<const uint8_t*>(signs);
  if constexpr (kSignsByColumn) {
    const hn::Repartition<uint32_t, D8> d32;
    uint32_t packed;
    std::memcpy(&packed, bytes + row / 8 * 4, sizeof packed);
    const auto bits =
        hn::Shl(hn::Set(d32, 0x01010101u), hn::Iota(d32, static_cast<uint32_t>(row % 8)));
    const auto selected = hn::BitCast(d8, hn::And(hn::Set(d32, packed), bits));
    return hn::VecFromMask(d8, hn::Eq(selected, hn::BitCast(d8, bits)));
  } else {
    return hn::VecFromMask(d8, hn::LoadMaskBits(d8, bytes + row / 2));
  }
}

// The signs of the tile `tiles` tiles after that of `signs`. Only kPlanes has signs: for other
// forms the pointer is null, to which not even an unused offset may be added.
template <CodeForm kForm>
HWY_INLINE const uint64_t* SignsAfter(const uint64_t* signs, size_t tiles) {
  if constexpr (kForm == CodeForm::kPlanes) return signs + tiles;
  return signs;
}

// The codes of kWidth rows, from `row` of their panel on, in one tile: Pair<i>() returns the codes
// of column pair i, plus OffsetOf(i). The order of entries suits interleaving instructions, which
// work within 128 bits. Products are exact modulo 2^32, so what offsets add to a sum may be
// subtracted before or after.
//
// The primary template is for fields, which are extracted by a shift and a mask. Rest<i>() needs no
// mask: it returns field i and those above it, r(i) = f(i) + 2^kBits r(i + 1). So the sum of f(i)
// x(i) is that of r(i) (x(i) - 2^kBits x(i - 1)), where x(-1) is 0.
template <CodeForm kForm>
class TileCodes {
 public:
  static constexpr size_t kPairs = TileCols(kForm) / 2;
  static constexpr int kBits = FieldBits(kForm);
  static constexpr int OffsetOf(size_t pair) { return pair + 1 < kPairs ? FieldOffset(kForm) : 0; }
  HWY_INLINE TileCodes(const std::byte* tile, const uint64_t*, size_t row)
      : packed_(InRegister(hn::Load(Codes(), reinterpret_cast<const int16_t*>(tile) + row * 2))) {}
  template <size_t kPair>
  HWY_INLINE hn::Vec<Codes> Rest() const {
    return hn::ShiftRight<static_cast<int>(kPair) * kBits>(packed_);
  }
  template <size_t kPair>
  HWY_INLINE hn::Vec<Codes> Pair() const {
    if constexpr (kPair + 1 == kPairs) return Rest<kPair>();
    constexpr auto kField = static_cast<int16_t>((1 << kBits) - 1);
    return hn::And(Rest<kPair>(), hn::Set(Codes(), kField));
  }

 private:
  hn::Vec<Codes> packed_;
};

// Calls add(pair, codes) for each pair of columns, `pair` being a constant.
template <class Tile, class Add, size_t... kPair>
HWY_INLINE void ForEachPair(const Tile& tile, const Add& add, std::index_sequence<kPair...>) {
  (add(kPair, tile.template Pair<kPair>()), ...);
}
template <class Tile, class Add>
HWY_INLINE void ForEachPair(const Tile& tile, const Add& add) {
  ForEachPair(tile, add, std::make_index_sequence<Tile::kPairs>());
}

template <>
class TileCodes<CodeForm::kBytes> {
 public:
  static constexpr size_t kPairs = 2;
  static constexpr int OffsetOf(size_t) { return 0; }
  template <size_t kPair>
  HWY_INLINE hn::Vec<Codes> Pair() const {
    return pairs_[kPair];
  }
  HWY_INLINE TileCodes(const std::byte* tile, const uint64_t*, size_t row) {
    const hn::Repartition<int8_t, Sums> d8;
    const Codes d16;
    const auto bytes = InRegister(hn::Load(d8, reinterpret_cast<const int8_t*>(tile) + row * 4));
    pairs_[0] = hn::ShiftRight<8>(hn::BitCast(d16, hn::InterleaveLower(d8, bytes, bytes)));
    pairs_[1] = hn::ShiftRight<8>(hn::BitCast(d16, hn::InterleaveUpper(d8, bytes, bytes)));
  }

 private:
  hn::Vec<Codes> pairs_[kPairs];
};

template <>
class TileCodes<CodeForm::kPlanes> {
 public:
  static constexpr size_t kPairs = 2;
  static constexpr int OffsetOf(size_t) { return 0; }
  template <size_t kPair>
  HWY_INLINE hn::Vec<Codes> Pair() const {
    return pairs_[kPair];
  }
  HWY_INLINE TileCodes(const std::byte* tile, const uint64_t* signs, size_t row) {
    const hn::Repartition<uint8_t, Sums> d8;
    const Codes d16;
    const auto low = InRegister(hn::Load(d8, reinterpret_cast<const uint8_t*>(tile) + row * 4));
    const auto high = SpreadSigns(d8, signs, row);
    pairs_[0] = hn::BitCast(d16, hn::InterleaveLower(d8, low, high));
    pairs_[1] = hn::BitCast(d16, hn::InterleaveUpper(d8, low, high));
  }

 private:
  hn::Vec<Codes> pairs_[kPairs];
};

template <>
class TileCodes<CodeForm::kInt16> {
 public:
  static constexpr size_t kPairs = 1;
  static constexpr int OffsetOf(size_t) { return 0; }
  template <size_t kPair>
  HWY_INLINE hn::Vec<Codes> Pair() const {
    return pairs_[kPair];
  }
  HWY_INLINE TileCodes(const std::byte* tile, const uint64_t*, size_t row) {
    pairs_[0] = hn::Load(Codes(), reinterpret_cast<const int16_t*>(tile) + row * 2);
  }

 private:
  hn::Vec<Codes> pairs_[kPairs];
};

}  // namespace kinglet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // KINGLET_KERNELS_CPU_TILE_CODES_INL_H_

// Dot products of vectors with rows of codes in 9 bits (kernels/nine_bit_row.h), and sums of such
// rows.
#if defined(KINGLET_KERNELS_CPU_NINE_BIT_DOTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KINGLET_KERNELS_CPU_NINE_BIT_DOTS_INL_H_
#undef KINGLET_KERNELS_CPU_NINE_BIT_DOTS_INL_H_
#else
#define KINGLET_KERNELS_CPU_NINE_BIT_DOTS_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/cpu/dots-inl.h"
#include "kernels/cpu/highway-inl.h"
#include "kernels/cpu/order-inl.h"
#include "kernels/cpu/pair_products-inl.h"
#include "kernels/cpu/vector.h"

HWY_BEFORE_NAMESPACE();
namespace kinglet::cpu::HWY_NAMESPACE {

using LowBytes = hn::CappedTag<uint8_t, NineBitRow::kPadding>;
using RowCodes = hn::Repartition<int16_t, LowBytes>;
using RowSums = hn::Repartition<int32_t, LowBytes>;

// 255 for each bit that is set, else 0. Reads exactly one bit for each byte of the result.
HWY_INLINE hn::Vec<LowBytes> SignBytes(const uint8_t* bits) {
  const LowBytes d8;
#if HWY_TARGET == HWY_AVX2
  // LoadMaskBits moves the bits through a general register; a load can broadcast them.
  alignas(32) static constexpr uint8_t kByte[32] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1,
                                                    2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3};
  int32_t four;
  std::memcpy(&four, bits, sizeof four);
  const auto all = hn::BitCast(d8, hn::Set(hn::Repartition<int32_t, LowBytes>(), four));
  const auto spread = hn::TableLookupBytes(all, hn::Load(d8, kByte));
  const hn::Repartition<uint64_t, LowBytes> d64;
  const auto bit = hn::BitCast(d8, hn::Set(d64, 0x8040201008040201u));
  return hn::VecFromMask(d8, hn::Eq(hn::And(spread, bit), bit));
#else
  return hn::VecFromMask(d8, hn::LoadMaskBits(d8, bits));  // later versions may read 8 bytes
#endif
}

// The codes of as many columns as a SIMD vector has bytes. A code's two bytes are brought together
// by interleaving, which works within 128 bits: `first` has columns 0 to 7 of each 16, `second` the
// others.
struct RowPart {
  hn::Vec<RowCodes> first, second;

  HWY_INLINE RowPart(const uint8_t* low_bytes, const uint8_t* sign_bits) {
    const LowBytes d8;
    const auto low = InRegister(hn::LoadU(d8, low_bytes));
    const auto high = SignBytes(sign_bits);
    first = hn::BitCast(RowCodes(), hn::InterleaveLower(d8, low, high));
    second = hn::BitCast(RowCodes(), hn::InterleaveUpper(d8, low, high));
  }
};

// kVectors vectors x in the order of RowPart, padded with zeros as rows are.
template <size_t kVectors>
class OrderedVectors {
 public:
  HWY_INLINE OrderedVectors(const CodeDots* vectors, const NineBitRow& row)
      : stride_(row.Padded()) {
    for (size_t v = 0; v < kVectors; ++v) {
      for (size_t i = 0; i < stride_; i += 16) {
        int16_t* const to = codes_ + v * stride_ + i / kPart * kPart + i % kPart / 2;
        if (i + 16 <= row.count) {
          Store(vectors[v].x + i, to);
        } else {
          int16_t last[16] = {};
          if (i < row.count) {
            std::memcpy(last, vectors[v].x + i, (row.count - i) * sizeof(int16_t));
          }
          Store(last, to);
        }
      }
    }
  }
  // The columns of vector v in the part that begins at column i.
  HWY_INLINE hn::Vec<RowCodes> First(size_t v, size_t i) const {
    return hn::LoadU(RowCodes(), codes_ + v * stride_ + i);
  }
  HWY_INLINE hn::Vec<RowCodes> Second(size_t v, size_t i) const {
    return hn::LoadU(RowCodes(), codes_ + v * stride_ + i + kPart / 2);
  }

 private:
  static constexpr size_t kPart = hn::MaxLanes(LowBytes());
  static HWY_INLINE void Store(const int16_t* codes, int16_t* to) {
    const hn::FixedTag<int16_t, 8> eight;
    hn::StoreU(hn::LoadU(eight, codes), eight, to);
    hn::StoreU(hn::LoadU(eight, codes + 8), eight, to + kPart / 2);
  }
  size_t stride_;
  alignas(64) int16_t codes_[NineBitRow::kMostCodes];
};

// The elements of sums[v * kRows + r] add up to row r . x of vector v. The rows lie one after the
// other, from `row` on. Rows kFetchRows further are fetched, since they may not be in the
// processor's cache yet.
template <class Products, size_t kVectors, size_t kRows>
HWY_INLINE void MultiplyNineBitRows(const uint8_t* row, const NineBitRow& layout,
                                    const OrderedVectors<kVectors>& x,
                                    hn::Vec<RowSums> (&sums)[kVectors * kRows]) {
  const RowSums d32;
  const size_t padded = layout.Padded(), stride = layout.Bytes();
  for (auto& sum : sums) sum = hn::Zero(d32);
  FetchToSecondLevel(row + kFetchRows * stride, kRows * stride);
  for (size_t i = 0; i < padded; i += hn::MaxLanes(LowBytes())) {
    for (size_t r = 0; r < kRows; ++r) {
      const uint8_t* const at = row + r * stride;
      const RowPart part(at + i, at + padded + i / 8);
      for (size_t v = 0; v < kVectors; ++v) {
        auto& sum = sums[v * kRows + r];
        sum = Products::Add(d32, sum, part.first, x.First(v, i));
        sum = Products::Add(d32, sum, part.second, x.Second(v, i));
      }
    }
  }
}

template <class Products, size_t kVectors>
HWY_INLINE void NineBitDotsOf(const NineBitRows& rows, const CodeDots* vectors, float scale,
                              float factor) {
  // As many sums as fit in registers, of which four at a time are added up.
  constexpr size_t kRows = kVectors == 1 ? 4 : 2;
  const hn::FixedTag<float, 4> four;
  const hn::Half<decltype(four)> two;
  const RowSums d32;
  const OrderedVectors<kVectors> x(vectors, rows.row);
  const size_t stride = rows.row.Bytes();
  size_t row = 0;
  for (; row + kRows <= rows.count; row += kRows) {
    hn::Vec<RowSums> sums[kVectors * kRows];
    MultiplyNineBitRows<Products, kVectors, kRows>(rows.data + row * stride, rows.row, x, sums);
    for (size_t i = 0; i < kVectors * kRows; i += 4) {
      const auto dots = ScaledDots(SumsOfElements(d32, sums + i), scale, factor);
      float* const out = vectors[i / kRows].out + row;
      if constexpr (kRows == 4) {
        hn::StoreU(dots, four, out);
      } else {
        hn::StoreU(hn::LowerHalf(two, dots), two, out);
        hn::StoreU(hn::UpperHalf(two, dots), two, vectors[i / kRows + 1].out + row);
      }
    }
  }
  for (; row < rows.count; ++row) {
    hn::Vec<RowSums> sums[kVectors];
    MultiplyNineBitRows<Products, kVectors, 1>(rows.data + row * stride, rows.row, x, sums);
    for (size_t v = 0; v < kVectors; ++v) {
      vectors[v].out[row] = ScaledDot(d32, sums[v], scale, factor);
    }
  }
}

// Codes are decoded once for up to kMost vectors.
template <class Products>
HWY_INLINE void NineBitDotsWith(const NineBitRows& rows, const CodeDots* vectors, size_t count,
                                float scale, float factor) {
  constexpr size_t kMost = HWY_TARGET == HWY_AVX3 ? 8 : 4;
  const size_t max_vectors = NineBitRow::kMostCodes / rows.row.Padded();
  size_t v = 0;
  for (; kMost <= max_vectors && v + kMost <= count; v += kMost) {
    NineBitDotsOf<Products, kMost>(rows, vectors + v, scale, factor);
  }
  for (; 2 <= max_vectors && v + 2 <= count; v += 2) {
    NineBitDotsOf<Products, 2>(rows, vectors + v, scale, factor);
  }
  for (; v < count; ++v) NineBitDotsOf<Products, 1>(rows, vectors + v, scale, factor);
}

void NineBitDots(const NineBitRows& rows, const CodeDots* vectors, size_t count, float scale,
                 float factor) {
  NineBitDotsWith<PairProducts>(rows, vectors, count, scale, factor);
}
#if HWY_TARGET == HWY_AVX3
void NineBitDotsVnni(const NineBitRows& rows, const CodeDots* vectors, size_t count, float scale,
                     float factor) {
  NineBitDotsWith<VnniPairProducts>(rows, vectors, count, scale, factor);
}
#endif

void StoreNineBits(const int16_t* codes, size_t n, uint8_t* low, uint8_t* signs) {
  const hn::FixedTag<int16_t, 8> d16;
  const hn::FixedTag<uint8_t, 8> d8;
  for (size_t i = 0; i < n; i += 8) {
    const auto eight = hn::LoadU(d16, codes + i);
    hn::StoreU(hn::DemoteTo(d8, hn::And(eight, hn::Set(d16, 255))), d8, low + i);
    uint8_t bits[8];  // as many bytes as StoreMaskBits may write
    hn::StoreMaskBits(d16, hn::Lt(eight, hn::Zero(d16)), bits);
    signs[i / 8] = bits[0];
  }
}

void LoadNineBits(const NineBitParts& rows, size_t n, int16_t* codes) {
  const hn::CappedTag<int16_t, 16> many;
  const hn::FixedTag<int16_t, 8> eight;
  for (size_t r = 0; r < rows.count; ++r, codes += n) {
    size_t i = 0;
    for (; i + hn::MaxLanes(many) <= n; i += hn::MaxLanes(many)) {
      hn::StoreU(LoadCodes(many, rows, r, i), many, codes + i);
    }
    for (; i < n; i += 8) hn::StoreU(LoadCodes(eight, rows, r, i), eight, codes + i);
  }
}

// Products and sums of parts of rows. AVX2 has few instructions for bits, so 32 codes are decoded
// at once, in the order of RowPart.
#if HWY_TARGET == HWY_AVX2
constexpr size_t kWholePart = hn::MaxLanes(LowBytes());
HWY_INLINE RowPart WholePart(const NineBitParts& rows, size_t r) {
  return {rows.low + r * rows.stride, rows.signs + r * rows.stride};
}

HWY_INLINE void WholePartDots(const NineBitParts& rows, const CodeDots& vector, float scale,
                              float factor) {
  const RowSums d32;
  const hn::FixedTag<int16_t, 8> eight;
  const auto pair = [&](size_t i) HWY_ATTR {
    const int16_t* const x = vector.x + i;
    return hn::Combine(RowCodes(), hn::LoadU(eight, x + 16), hn::LoadU(eight, x));
  };
  const auto first = pair(0), second = pair(8);
  const auto multiply = [&](size_t r) HWY_ATTR {
    const RowPart part = WholePart(rows, r);
    return PairProducts::Add(d32, PairProducts::Add(d32, hn::Zero(d32), part.first, first),
                             part.second, second);
  };
  StoreDots(d32, rows.count, multiply, scale, factor, vector.out);
}

// Two rows at a time are interleaved, so that a pair of products belongs to one column.
HWY_INLINE void WeightedWholeParts(const NineBitParts& rows, const int16_t* codes, float scale,
                                   float* out) {
  const RowSums d32;
  const RowCodes d16;
  const hn::Repartition<float, LowBytes> floats;
  const hn::FixedTag<float, 4> four;
  hn::Vec<RowSums> sums[4];
  for (auto& sum : sums) sum = hn::Zero(d32);
  const auto add = [&](const RowPart& row, hn::Vec<RowCodes> next_first,
                       hn::Vec<RowCodes> next_second, int32_t pair) HWY_ATTR {
    const auto weights = hn::BitCast(d16, hn::Set(d32, pair));
    const auto sum = [&](size_t i, hn::Vec<RowCodes> values)
                         HWY_ATTR { sums[i] = PairProducts::Add(d32, sums[i], values, weights); };
    sum(0, hn::InterleaveLower(d16, row.first, next_first));
    sum(1, hn::InterleaveUpper(d16, row.first, next_first));
    sum(2, hn::InterleaveLower(d16, row.second, next_second));
    sum(3, hn::InterleaveUpper(d16, row.second, next_second));
  };
  size_t r = 0;
  for (; r + 2 <= rows.count; r += 2) {
    const RowPart next = WholePart(rows, r + 1);
    add(WholePart(rows, r), next.first, next.second, LoadPair(codes + r));
  }
  if (r < rows.count) {
    const int16_t last[2] = {codes[r], 0};
    add(WholePart(rows, r), hn::Zero(d16), hn::Zero(d16), LoadPair(last));
  }
  // Half h of sum i has the four columns from 16 h + 4 i on.
  for (size_t i = 0; i < 4; ++i) {
    alignas(32) float columns[8];
    hn::Store(hn::Mul(hn::ConvertTo(floats, sums[i]), hn::Set(floats, scale)), floats, columns);
    hn::StoreU(hn::Load(four, columns), four, out + 4 * i);
    hn::StoreU(hn::Load(four, columns + 4), four, out + 16 + 4 * i);
  }
}
#endif

template <class Products>
HWY_INLINE void NineBitPartDotsWith(const NineBitParts& rows, const CodeDots* vectors, size_t count,
                                    size_t n, float scale, float factor) {
#if HWY_TARGET == HWY_AVX2
  if (n == kWholePart) {
    for (size_t v = 0; v < count; ++v) WholePartDots(rows, vectors[v], scale, factor);
    return;
  }
#endif
  IntegerDotsWith<Products>(rows, vectors, count, n, scale, factor);
}
template <class Products>
HWY_INLINE void WeightedNineBitsWith(const NineBitParts& rows, const int16_t* codes, float scale,
                                     size_t width, float* out) {
#if HWY_TARGET == HWY_AVX2
  if (width == kWholePart) return WeightedWholeParts(rows, codes, scale, out);
#endif
  WeightedCodesWith<Products>(rows, codes, scale, width, out);
}

void NineBitPartDots(const NineBitParts& rows, const CodeDots* vectors, size_t count, size_t n,
                     float scale, float factor) {
  NineBitPartDotsWith<PairProducts>(rows, vectors, count, n, scale, factor);
}
void WeightedNineBits(const NineBitParts& rows, const int16_t* codes, float scale, size_t width,
                      float* out) {
  WeightedNineBitsWith<PairProducts>(rows, codes, scale, width, out);
}
#if HWY_TARGET == HWY_AVX3
void NineBitPartDotsVnni(const NineBitParts& rows, const CodeDots* vectors, size_t count, size_t n,
                         float scale, float factor) {
  NineBitPartDotsWith<VnniPairProducts>(rows, vectors, count, n, scale, factor);
}
void WeightedNineBitsVnni(const NineBitParts& rows, const int16_t* codes, float scale, size_t width,
                          float* out) {
  WeightedNineBitsWith<VnniPairProducts>(rows, codes, scale, width, out);
}
#endif

}  // namespace kinglet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // KINGLET_KERNELS_CPU_NINE_BIT_DOTS_INL_H_

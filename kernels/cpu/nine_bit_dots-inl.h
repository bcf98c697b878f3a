// Dot products of vectors with rows of codes in 9 bits (kernels/nine_bit_row.h).
#if defined(KINGLET_KERNELS_CPU_NINE_BIT_DOTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KINGLET_KERNELS_CPU_NINE_BIT_DOTS_INL_H_
#undef KINGLET_KERNELS_CPU_NINE_BIT_DOTS_INL_H_
#else
#define KINGLET_KERNELS_CPU_NINE_BIT_DOTS_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hwy/highway.h"
#include "kernels/cpu/dots-inl.h"
#include "kernels/cpu/order-inl.h"
#include "kernels/cpu/pair_products-inl.h"
#include "kernels/cpu/vector.h"

HWY_BEFORE_NAMESPACE();
namespace kinglet::cpu::HWY_NAMESPACE {

using LowBytes = hn::CappedTag<uint8_t, NineBitRow::kBlock>;
using RowCodes = hn::Repartition<int16_t, LowBytes>;
using RowSums = hn::Repartition<int32_t, LowBytes>;

// The codes of as many columns as a SIMD vector has bytes. A code's two bytes are brought together
// by interleaving, which works within 128 bits: `first` has columns 0 to 7 of each 16, `second` the
// others.
struct RowPart {
  hn::Vec<RowCodes> first, second;

  HWY_INLINE RowPart(const uint8_t* low_bytes, const uint8_t* sign_bits) {
    const LowBytes d8;
    const auto low = hn::LoadU(d8, low_bytes);
    // Reads a bit for each byte, and no more. (Later versions of Highway may read 8 bytes.)
    const auto high = hn::VecFromMask(d8, hn::LoadMaskBits(d8, sign_bits));
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
  // Of vector v, the columns of the part that begins at column i.
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
// other, from `row` on. Those kFetchRows further may not be in the processor's cache yet.
template <class Products, size_t kVectors, size_t kRows>
HWY_INLINE void MultiplyNineBitRows(const uint8_t* row, const NineBitRow& layout,
                                    const OrderedVectors<kVectors>& x,
                                    hn::Vec<RowSums> (&sums)[kVectors * kRows]) {
  const RowSums d32;
  const size_t padded = layout.Padded(), stride = layout.Bytes();
  for (auto& sum : sums) sum = hn::Zero(d32);
  const uint8_t* const fetched = row + kFetchRows * stride;
  for (size_t r = 0; r < kRows; ++r) PrefetchToSecondLevel(fetched + r * stride + padded);
  for (size_t i = 0; i < padded; i += hn::MaxLanes(LowBytes())) {
    for (size_t r = 0; r < kRows; ++r) {
      PrefetchToSecondLevel(fetched + r * stride + i);
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
  // As many sums as there are registers for; four at a time are added up.
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

// Codes are decoded once for so many vectors.
template <class Products>
HWY_INLINE void NineBitDotsWith(const NineBitRows& rows, const CodeDots* vectors, size_t count,
                                float scale, float factor) {
  constexpr size_t kMost = HWY_TARGET == HWY_AVX3 ? 8 : 4;
  const size_t fit = NineBitRow::kMostCodes / rows.row.Padded();
  size_t v = 0;
  for (; kMost <= fit && v + kMost <= count; v += kMost) {
    NineBitDotsOf<Products, kMost>(rows, vectors + v, scale, factor);
  }
  for (; 2 <= fit && v + 2 <= count; v += 2) {
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

}  // namespace kinglet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // KINGLET_KERNELS_CPU_NINE_BIT_DOTS_INL_H_

// Dot products of vectors with rows of codes in 9 bits (kernels/nine_bit_row.h).
#if defined(KINGLET_KERNELS_CPU_NINE_BIT_DOTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KINGLET_KERNELS_CPU_NINE_BIT_DOTS_INL_H_
#undef KINGLET_KERNELS_CPU_NINE_BIT_DOTS_INL_H_
#else
#define KINGLET_KERNELS_CPU_NINE_BIT_DOTS_INL_H_
#endif

#include <algorithm>
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
        int16_t codes[16] = {};
        if (i < row.count) {
          std::memcpy(codes, vectors[v].x + i,
                      std::min<size_t>(row.count - i, 16) * sizeof(int16_t));
        }
        int16_t* to = codes_ + v * stride_ + i / kPart * kPart + i % kPart / 2;
        std::memcpy(to, codes, 8 * sizeof(int16_t));
        std::memcpy(to + kPart / 2, codes + 8, 8 * sizeof(int16_t));
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
  size_t stride_;
  alignas(64) int16_t codes_[kMostNineBitCodes];
};

// The elements of sums[v][r] add up to row r . x of vector v. The rows lie one after the other,
// from `row` on. Those kFetchRows further may not be in the processor's cache yet.
template <class Products, size_t kVectors, size_t kRows>
HWY_INLINE void MultiplyNineBitRows(const uint8_t* row, const NineBitRow& layout,
                                    const OrderedVectors<kVectors>& x,
                                    hn::Vec<RowSums> (&sums)[kVectors][kRows]) {
  const RowSums d32;
  const size_t padded = layout.Padded(), stride = layout.Bytes();
  for (auto& of_vector : sums) {
    for (auto& sum : of_vector) sum = hn::Zero(d32);
  }
  const uint8_t* const fetched = row + kFetchRows * stride;
  for (size_t r = 0; r < kRows; ++r) PrefetchToSecondLevel(fetched + r * stride + padded);
  for (size_t i = 0; i < padded; i += hn::MaxLanes(LowBytes())) {
    for (size_t r = 0; r < kRows; ++r) {
      PrefetchToSecondLevel(fetched + r * stride + i);
      const uint8_t* const at = row + r * stride;
      const RowPart part(at + i, at + padded + i / 8);
      for (size_t v = 0; v < kVectors; ++v) {
        sums[v][r] = Products::Add(d32, sums[v][r], part.first, x.First(v, i));
        sums[v][r] = Products::Add(d32, sums[v][r], part.second, x.Second(v, i));
      }
    }
  }
}

template <class Products, size_t kVectors>
HWY_INLINE void NineBitDotsOf(const NineBitRows& rows, const CodeDots* vectors, float scale,
                              float factor) {
  const RowSums d32;
  const OrderedVectors<kVectors> x(vectors, rows.row);
  const size_t stride = rows.row.Bytes();
  size_t row = 0;
  for (; row + 4 <= rows.count; row += 4) {
    hn::Vec<RowSums> sums[kVectors][4];
    MultiplyNineBitRows<Products>(rows.data + row * stride, rows.row, x, sums);
    for (size_t v = 0; v < kVectors; ++v) {
      StoreDots(SumsOfElements(d32, sums[v]), scale, factor, vectors[v].out + row);
    }
  }
  for (; row < rows.count; ++row) {
    hn::Vec<RowSums> sums[kVectors][1];
    MultiplyNineBitRows<Products>(rows.data + row * stride, rows.row, x, sums);
    for (size_t v = 0; v < kVectors; ++v) {
      const auto sum = static_cast<float>(hn::GetLane(hn::SumOfLanes(d32, sums[v][0])));
      vectors[v].out[row] = factor * (sum * scale);
    }
  }
}

template <class Products>
HWY_INLINE void NineBitDotsWith(const NineBitRows& rows, const CodeDots* vectors, size_t count,
                                float scale, float factor) {
  size_t v = 0;
  if (rows.row.Padded() * kDotVectors <= kMostNineBitCodes) {
    for (; v + kDotVectors <= count; v += kDotVectors) {
      NineBitDotsOf<Products, kDotVectors>(rows, vectors + v, scale, factor);
    }
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

// Dot products of one vector with rows that lie in a frame's buffers, and sums of such rows.
#if defined(KINGLET_KERNELS_CPU_DOTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KINGLET_KERNELS_CPU_DOTS_INL_H_
#undef KINGLET_KERNELS_CPU_DOTS_INL_H_
#else
#define KINGLET_KERNELS_CPU_DOTS_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/cpu/highway-inl.h"
#include "kernels/cpu/order-inl.h"
#include "kernels/cpu/pair_products-inl.h"
#include "kernels/cpu/vector.h"

HWY_BEFORE_NAMESPACE();
namespace kinglet::cpu::HWY_NAMESPACE {

// The sum of all elements of each of the four vectors at `rows`, in order.
template <class D32, class V = hn::Vec<D32>>
HWY_INLINE hn::Vec<hn::FixedTag<int32_t, 4>> SumsOfElements(D32 d, const V* rows) {
  const hn::RepartitionToWide<D32> d64;
  // Within each 128 bits: pairs of two rows are added up, then of all four.
  const auto first =
      hn::Add(hn::InterleaveLower(d, rows[0], rows[1]), hn::InterleaveUpper(d, rows[0], rows[1]));
  const auto second =
      hn::Add(hn::InterleaveLower(d, rows[2], rows[3]), hn::InterleaveUpper(d, rows[2], rows[3]));
  const auto first64 = hn::BitCast(d64, first), second64 = hn::BitCast(d64, second);
  const auto sums = hn::Add(hn::BitCast(d, hn::InterleaveLower(d64, first64, second64)),
                            hn::BitCast(d, hn::InterleaveUpper(d64, first64, second64)));
  if constexpr (hn::MaxLanes(D32()) > 4) {
    const hn::Half<D32> half;
    const auto halves = hn::Add(hn::LowerHalf(half, sums), hn::UpperHalf(half, sums));
    if constexpr (hn::MaxLanes(half) > 4) {
      const hn::Half<decltype(half)> quarter;
      return hn::Add(hn::LowerHalf(quarter, halves), hn::UpperHalf(quarter, halves));
    } else {
      return halves;
    }
  } else {
    return sums;
  }
}

// factor * (float(sum) * scale) for each sum.
HWY_INLINE hn::Vec<hn::FixedTag<float, 4>> ScaledDots(hn::Vec<hn::FixedTag<int32_t, 4>> sums,
                                                      float scale, float factor) {
  const hn::FixedTag<float, 4> four;
  const auto scaled = hn::Mul(hn::ConvertTo(four, sums), hn::Set(four, scale));
  return hn::Mul(hn::Set(four, factor), scaled);
}

// factor * (float(sum) * scale), for the sum of all elements of one vector.
template <class D32>
HWY_INLINE float ScaledDot(D32 d, hn::Vec<D32> elements, float scale, float factor) {
  return factor * (static_cast<float>(hn::GetLane(hn::SumOfLanes(d, elements))) * scale);
}

#if HWY_TARGET == HWY_AVX3
// a - b where the mask is set, else a, in one instruction, which Highway 1.0.3 lacks.
HWY_INLINE hn::Vec512<int16_t> MinusWhere(hn::Vec512<int16_t> a, hn::Mask512<int16_t> where,
                                          hn::Vec512<int16_t> b) {
  return hn::Vec512<int16_t>{_mm512_mask_sub_epi16(a.raw, where.raw, a.raw, b.raw)};
}
HWY_INLINE hn::Vec256<int16_t> MinusWhere(hn::Vec256<int16_t> a, hn::Mask256<int16_t> where,
                                          hn::Vec256<int16_t> b) {
  return hn::Vec256<int16_t>{_mm256_mask_sub_epi16(a.raw, where.raw, a.raw, b.raw)};
}
HWY_INLINE hn::Vec128<int16_t> MinusWhere(hn::Vec128<int16_t> a, hn::Mask128<int16_t> where,
                                          hn::Vec128<int16_t> b) {
  return hn::Vec128<int16_t>{_mm_mask_sub_epi16(a.raw, where.raw, a.raw, b.raw)};
}
#endif

// Codes i, i + 1, ... of row r. i is a multiple of 8 for parts in 9 bits.
template <class D16>
HWY_INLINE hn::Vec<D16> LoadCodes(D16 d16, const StridedRows<int16_t>& rows, size_t r, size_t i) {
  return hn::LoadU(d16, rows.data + r * rows.stride + i);
}
template <class D16>
HWY_INLINE hn::Vec<D16> LoadCodes(D16 d16, const NineBitParts& rows, size_t r, size_t i) {
  const hn::Rebind<uint8_t, D16> d8;
  const auto low = hn::PromoteTo(d16, hn::LoadU(d8, rows.low + r * rows.stride + i));
  const uint8_t* const signs = rows.signs + r * rows.stride + i / 8;
  // Exactly one bit for each code is read. (Later versions of Highway may read 8 bytes.)
#if HWY_TARGET == HWY_AVX3
  return MinusWhere(low, hn::LoadMaskBits(d16, signs), hn::Set(d16, 256));
#else
  if constexpr (hn::MaxLanes(d16) == 16) {
    int16_t bits;
    std::memcpy(&bits, signs, sizeof bits);
    alignas(32) static constexpr int16_t kBits[16] = {
        1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, -32768};
    const auto bit = hn::Load(d16, kBits);
    const auto negative = hn::VecFromMask(d16, hn::Eq(hn::And(hn::Set(d16, bits), bit), bit));
    return hn::Or(low, hn::ShiftLeft<8>(negative));
  } else {
    return hn::Or(low, hn::IfThenElseZero(hn::LoadMaskBits(d16, signs), hn::Set(d16, -256)));
  }
#endif
}
HWY_INLINE int32_t LoadCode(const StridedRows<int16_t>& rows, size_t r, size_t i) {
  return rows.data[r * rows.stride + i];
}
HWY_INLINE int32_t LoadCode(const NineBitParts& rows, size_t r, size_t i) {
  const int32_t sign = rows.signs[r * rows.stride + i / 8] >> (i % 8) & 1;
  return rows.low[r * rows.stride + i] - 256 * sign;
}

// Rows of a neural cache lie one after the other and may not be in the processor's cache. A row is
// fetched when the row kFetchRows before it is multiplied, unless rows are shorter than kLongRow
// codes.
constexpr size_t kFetchRows = 32;
constexpr size_t kLongRow = 64;
HWY_INLINE void FetchRows(const StridedRows<int16_t>& rows, size_t first, size_t count, size_t n) {
  if (rows.stride != n || n < kLongRow) return;
  FetchToSecondLevel(rows.data + (first + kFetchRows) * n, count * n * sizeof(int16_t));
}
HWY_INLINE void FetchRows(const NineBitParts&, size_t, size_t, size_t) {}

// kVectors vectors x in parts of one SIMD vector, for products with rows. The last part of a row
// overlaps the one before it; x is zero in the overlap. So nothing outside the row is read.
template <class Products, class D16, size_t kVectors>
class DotParts {
 public:
  static constexpr size_t kCodes = hn::MaxLanes(D16());
  using D32 = hn::Repartition<int32_t, D16>;

  HWY_INLINE DotParts(const CodeDots* vectors, size_t n)
      : vectors_(vectors), n_(n), whole_(n / kCodes * kCodes) {
    for (size_t v = 0; v < kVectors; ++v) {
      std::memcpy(tails_[v] + kCodes - (n - whole_), vectors[v].x + whole_,
                  (n - whole_) * sizeof(int16_t));
    }
  }
  // The elements of sums[v][r] add up to rows[first + r] . x of vector v.
  template <size_t kRows, class Rows>
  HWY_INLINE void Multiply(const Rows& rows, size_t first,
                           hn::Vec<D32> (&sums)[kVectors][kRows]) const {
    FetchRows(rows, first, kRows, n_);
    for (auto& of_vector : sums) {
      for (auto& sum : of_vector) sum = hn::Zero(D32());
    }
    for (size_t i = 0; i < whole_; i += kCodes) {
      hn::Vec<D16> parts[kVectors];
      for (size_t v = 0; v < kVectors; ++v) parts[v] = hn::LoadU(D16(), vectors_[v].x + i);
      for (size_t r = 0; r < kRows; ++r) {
        const auto row = LoadCodes(D16(), rows, first + r, i);
        for (size_t v = 0; v < kVectors; ++v) {
          sums[v][r] = Products::Add(D32(), sums[v][r], row, parts[v]);
        }
      }
    }
    if (whole_ == n_) return;
    for (size_t r = 0; r < kRows; ++r) {
      const auto row = LoadCodes(D16(), rows, first + r, n_ - kCodes);
      for (size_t v = 0; v < kVectors; ++v) {
        sums[v][r] = Products::Add(D32(), sums[v][r], row, hn::Load(D16(), tails_[v]));
      }
    }
  }

 private:
  const CodeDots* vectors_;
  size_t n_, whole_;
  alignas(64) int16_t tails_[kVectors][kCodes] = {};
};

template <class Products, size_t kVectors, class D16, class Rows>
HWY_INLINE void LongIntegerDots(D16, const Rows& rows, const CodeDots* vectors, size_t n,
                                float scale, float factor) {
  const hn::FixedTag<float, 4> four;
  const DotParts<Products, D16, kVectors> parts(vectors, n);
  const typename DotParts<Products, D16, kVectors>::D32 d32;
  size_t row = 0;
  for (; row + 4 <= rows.count; row += 4) {
    hn::Vec<decltype(d32)> sums[kVectors][4];
    parts.Multiply(rows, row, sums);
    for (size_t v = 0; v < kVectors; ++v) {
      const auto dots = ScaledDots(SumsOfElements(d32, sums[v]), scale, factor);
      hn::StoreU(dots, four, vectors[v].out + row);
    }
  }
  for (; row < rows.count; ++row) {
    hn::Vec<decltype(d32)> sums[kVectors][1];
    parts.Multiply(rows, row, sums);
    for (size_t v = 0; v < kVectors; ++v) {
      vectors[v].out[row] = ScaledDot(d32, sums[v][0], scale, factor);
    }
  }
}

// out[r] = factor * (float(sum of the elements of multiply(r)) * scale), r < count.
template <class D32, class Multiply>
HWY_INLINE void StoreDots(D32 d32, size_t count, const Multiply& multiply, float scale,
                          float factor, float* out) {
  const hn::FixedTag<float, 4> four;
  size_t row = 0;
  for (; row + 4 <= count; row += 4) {
    const hn::Vec<D32> sums[4] = {multiply(row), multiply(row + 1), multiply(row + 2),
                                  multiply(row + 3)};
    hn::StoreU(ScaledDots(SumsOfElements(d32, sums), scale, factor), four, out + row);
  }
  for (; row < count; ++row) out[row] = ScaledDot(d32, multiply(row), scale, factor);
}

// Products of one vector x, which stays in registers, with rows of up to kParts SIMD vectors, such
// as attention's keys. The last part of a row overlaps the one before it, where x is zero.
// REQUIRES: n is more codes than kParts - 1 SIMD vectors have, and at least one's.
template <class Products, size_t kParts, class D16, class Rows>
HWY_INLINE void ShortIntegerDots(D16 d16, const Rows& rows, const CodeDots& vector, size_t n,
                                 float scale, float factor) {
  constexpr size_t kCodes = hn::MaxLanes(d16);
  const hn::Repartition<int32_t, D16> d32;
  const size_t last = n - kCodes, whole = (kParts - 1) * kCodes;
  hn::Vec<D16> x[kParts];
  for (size_t p = 0; p + 1 < kParts; ++p) x[p] = hn::LoadU(d16, vector.x + p * kCodes);
  x[kParts - 1] =
      hn::IfThenZeroElse(hn::FirstN(d16, whole - last), hn::LoadU(d16, vector.x + last));
  const auto multiply = [&](size_t row) HWY_ATTR {
    auto sum = hn::Zero(d32);
    for (size_t p = 0; p + 1 < kParts; ++p) {
      sum = Products::Add(d32, sum, LoadCodes(d16, rows, row, p * kCodes), x[p]);
    }
    return Products::Add(d32, sum, LoadCodes(d16, rows, row, last), x[kParts - 1]);
  };
  StoreDots(d32, rows.count, multiply, scale, factor, vector.out);
}

// Vectors whose products with four rows stay in registers together.
constexpr size_t kDotVectors = HWY_TARGET == HWY_AVX3 ? 4 : 2;

template <class Products, class Rows>
HWY_INLINE void IntegerDotsWith(const Rows& rows, const CodeDots* vectors, size_t count, size_t n,
                                float scale, float factor) {
  const hn::CappedTag<int16_t, 32> wide;
  const hn::CappedTag<int16_t, 16> narrow;
  const auto multiply = [&](auto d16) HWY_ATTR {
    size_t v = 0;
    for (; v + kDotVectors <= count; v += kDotVectors) {
      LongIntegerDots<Products, kDotVectors>(d16, rows, vectors + v, n, scale, factor);
    }
    for (; v < count; ++v) {
      if (n <= hn::MaxLanes(d16)) {
        ShortIntegerDots<Products, 1>(d16, rows, vectors[v], n, scale, factor);
      } else if (n <= 2 * hn::MaxLanes(d16)) {
        ShortIntegerDots<Products, 2>(d16, rows, vectors[v], n, scale, factor);
      } else {
        LongIntegerDots<Products, 1>(d16, rows, vectors + v, n, scale, factor);
      }
    }
  };
  if (n >= hn::MaxLanes(wide)) return multiply(wide);
  if (n >= hn::MaxLanes(narrow)) return multiply(narrow);
  for (size_t v = 0; v < count; ++v) {
    for (size_t r = 0; r < rows.count; ++r) {
      int32_t sum = 0;
      for (size_t i = 0; i < n; ++i) sum += LoadCode(rows, r, i) * vectors[v].x[i];
      vectors[v].out[r] = factor * (static_cast<float>(sum) * scale);
    }
  }
}

void IntegerDots(const StridedRows<int16_t>& rows, const CodeDots* vectors, size_t count, size_t n,
                 float scale, float factor) {
  IntegerDotsWith<PairProducts>(rows, vectors, count, n, scale, factor);
}

// The weighted sum of rows in the columns from c on, as many as D16 has elements. Two rows at a
// time are interleaved, so that a pair of products belongs to one column.
template <class Products, class D16, class Rows>
HWY_INLINE void WeightedColumns(D16 d16, const Rows& rows, const int16_t* codes, float scale,
                                size_t c, float* out) {
  const hn::Repartition<int32_t, D16> d32;
  const hn::Repartition<float, D16> floats;
  const hn::FixedTag<float, 4> four;
  // Two partial sums of each column, so that few additions wait for each other.
  hn::Vec<decltype(d32)> lowers[2] = {hn::Zero(d32), hn::Zero(d32)};
  hn::Vec<decltype(d32)> uppers[2] = {hn::Zero(d32), hn::Zero(d32)};
  const auto add = [&](size_t which, size_t r, hn::Vec<D16> next, int32_t pair) HWY_ATTR {
    const auto weights = hn::BitCast(d16, hn::Set(d32, pair));
    const auto values = LoadCodes(d16, rows, r, c);
    auto &lower = lowers[which], &upper = uppers[which];
    lower = Products::Add(d32, lower, hn::InterleaveLower(d16, values, next), weights);
    upper = Products::Add(d32, upper, hn::InterleaveUpper(d16, values, next), weights);
  };
  const auto add_two = [&](size_t which, size_t r) HWY_ATTR {
    add(which, r, LoadCodes(d16, rows, r + 1, c), LoadPair(codes + r));
  };
  size_t r = 0;
  for (; r + 4 <= rows.count; r += 4) {
    add_two(0, r);
    add_two(1, r + 2);
  }
  if (r + 2 <= rows.count) {
    add_two(0, r);
    r += 2;
  }
  if (r < rows.count) {
    const int16_t last[2] = {codes[r], 0};
    add(0, r, hn::Zero(d16), LoadPair(last));
  }
  const auto lower = hn::Add(lowers[0], lowers[1]), upper = hn::Add(uppers[0], uppers[1]);
  // Interleaving works within 128 bits: each result has four of eight neighbouring columns.
  alignas(64) float sums[2][hn::MaxLanes(floats)];
  hn::Store(hn::Mul(hn::ConvertTo(floats, lower), hn::Set(floats, scale)), floats, sums[0]);
  hn::Store(hn::Mul(hn::ConvertTo(floats, upper), hn::Set(floats, scale)), floats, sums[1]);
  for (size_t at = 0; at < hn::MaxLanes(floats); at += 4) {
    hn::StoreU(hn::Load(four, sums[0] + at), four, out + c + 2 * at);
    hn::StoreU(hn::Load(four, sums[1] + at), four, out + c + 2 * at + 4);
  }
}

// All columns. The last vector overlaps the one before. REQUIRES: width is at least one vector.
template <class Products, class D16, class Rows>
HWY_INLINE void WideWeightedCodes(D16 d16, const Rows& rows, const int16_t* codes, float scale,
                                  size_t width, float* out) {
  constexpr size_t kColumns = hn::MaxLanes(d16);
  size_t c = 0;
  for (; c + kColumns <= width; c += kColumns) {
    WeightedColumns<Products>(d16, rows, codes, scale, c, out);
  }
  if (c < width) WeightedColumns<Products>(d16, rows, codes, scale, width - kColumns, out);
}

template <class Products, class Rows>
HWY_INLINE void WeightedCodesWith(const Rows& rows, const int16_t* codes, float scale, size_t width,
                                  float* out) {
  const hn::CappedTag<int16_t, 32> wide;
  const hn::CappedTag<int16_t, 16> middle;
  const hn::FixedTag<int16_t, 8> narrow;
  if (width >= hn::MaxLanes(wide)) {
    return WideWeightedCodes<Products>(wide, rows, codes, scale, width, out);
  }
  if (width >= hn::MaxLanes(middle)) {
    return WideWeightedCodes<Products>(middle, rows, codes, scale, width, out);
  }
  if (width >= hn::MaxLanes(narrow)) {
    return WideWeightedCodes<Products>(narrow, rows, codes, scale, width, out);
  }
  for (size_t c = 0; c < width; ++c) {
    int32_t sum = 0;
    for (size_t r = 0; r < rows.count; ++r) sum += LoadCode(rows, r, c) * codes[r];
    out[c] = static_cast<float>(sum) * scale;
  }
}

void WeightedCodes(const StridedRows<int16_t>& rows, const int16_t* codes, float scale,
                   size_t width, float* out) {
  WeightedCodesWith<PairProducts>(rows, codes, scale, width, out);
}

#if HWY_TARGET == HWY_AVX3
void IntegerDotsVnni(const StridedRows<int16_t>& rows, const CodeDots* vectors, size_t count,
                     size_t n, float scale, float factor) {
  IntegerDotsWith<VnniPairProducts>(rows, vectors, count, n, scale, factor);
}
void WeightedCodesVnni(const StridedRows<int16_t>& rows, const int16_t* codes, float scale,
                       size_t width, float* out) {
  WeightedCodesWith<VnniPairProducts>(rows, codes, scale, width, out);
}
#endif

void RealDots(const StridedRows<float>& rows, const float* x, size_t n, float factor, float* out) {
  for (size_t r = 0; r < rows.count; ++r) {
    const float* row = rows.data + r * rows.stride;
    const float sum = OrderedSum(n, [&](auto d, auto partial, size_t i) HWY_ATTR {
      return hn::MulAdd(hn::LoadU(d, row + i), hn::LoadU(d, x + i), partial);
    });
    out[r] = factor * sum;
  }
}

}  // namespace kinglet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // KINGLET_KERNELS_CPU_DOTS_INL_H_

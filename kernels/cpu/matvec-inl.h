// Matrix-vector products over panels, and dot products with rows that lie in a frame's buffers.
#if defined(KINGLET_KERNELS_CPU_MATVEC_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KINGLET_KERNELS_CPU_MATVEC_INL_H_
#undef KINGLET_KERNELS_CPU_MATVEC_INL_H_
#else
#define KINGLET_KERNELS_CPU_MATVEC_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hwy/highway.h"
#include "kernels/cpu/order-inl.h"
#include "kernels/cpu/vector.h"

HWY_BEFORE_NAMESPACE();
namespace kinglet::cpu::HWY_NAMESPACE {

// sums[i] + a[2i] * b[2i] + a[2i+1] * b[2i+1]: pairs of 16-bit products.
template <class D32, class V32, class V16>
HWY_INLINE V32 AddPairProducts(D32 d32, V32 sums, V16 a, V16 b) {
#if HWY_ARCH_X86
  // One multiply-add instruction, which on x86 pairs neighbours; other machines may reorder.
  V32 unused = hn::Zero(d32);
  return hn::ReorderWidenMulAccumulate(d32, a, b, sums, unused);
#else
  const V32 a32 = hn::BitCast(d32, a), b32 = hn::BitCast(d32, b);
  const V32 odd = hn::Mul(hn::ShiftRight<16>(a32), hn::ShiftRight<16>(b32));
  const V32 even = hn::Mul(hn::ShiftRight<16>(hn::ShiftLeft<16>(a32)),
                           hn::ShiftRight<16>(hn::ShiftLeft<16>(b32)));
  return hn::Add(sums, hn::Add(even, odd));
#endif
}

HWY_INLINE int32_t LoadPair(const int16_t* x) {
  int32_t pair;
  std::memcpy(&pair, x, sizeof pair);
  return pair;
}

// Bias, rectifier and store of kWidth rows from `row` on.
template <class V>
HWY_INLINE void FinishRows(const Finish& finish, V value, size_t row, size_t rows, float* y) {
  const Reals d;
  if (finish.bias != nullptr) value = hn::Add(value, hn::Load(d, finish.bias + row));
  if (finish.rectify) value = hn::IfThenElseZero(hn::Gt(value, hn::Zero(d)), value);
  if (row + kWidth <= rows) {
    hn::StoreU(value, d, y + row);
  } else if (row < rows) {
    alignas(64) float last[kWidth];
    hn::Store(value, d, last);
    std::memcpy(y + row, last, (rows - row) * sizeof(float));
  }
}

// 32-bit sums of kPanels panels over pairs [begin, end), to sums[kPanels * 16].
template <size_t kPanels>
HWY_INLINE void PanelSums(const int16_t* codes, size_t panel_codes, const int16_t* x, size_t begin,
                          size_t end, int32_t* sums) {
  const hn::CappedTag<int32_t, kPanelRows> d32;
  const hn::Repartition<int16_t, decltype(d32)> d16;
  hn::Vec<decltype(d32)> accumulators[kPanels * kGroups];
  for (auto& accumulator : accumulators) accumulator = hn::Zero(d32);
  for (size_t pair = begin; pair < end; ++pair) {
    const auto both = hn::BitCast(d16, hn::Set(d32, LoadPair(x + 2 * pair)));
    for (size_t p = 0; p < kPanels; ++p) {
      const int16_t* at = codes + p * panel_codes + pair * 2 * kPanelRows;
      for (size_t g = 0; g < kGroups; ++g) {
        auto& accumulator = accumulators[p * kGroups + g];
        accumulator = AddPairProducts(d32, accumulator, hn::Load(d16, at + g * 2 * kWidth), both);
      }
    }
  }
  for (size_t a = 0; a < kPanels * kGroups; ++a) {
    hn::Store(accumulators[a], d32, sums + a * kWidth);
  }
}

template <size_t kPanels>
HWY_INLINE void IntegerPanels(const CodePanels& weight, size_t panel, const int16_t* x, float step,
                              size_t chunk_pairs, const Finish& finish, float* y) {
  const Reals d;
  const hn::RebindToSigned<Reals> d32;
  const size_t pairs = (weight.cols + 1) / 2;
  const size_t panel_codes = pairs * 2 * kPanelRows;
  const int16_t* codes = weight.codes + panel * panel_codes;
  alignas(64) float products[kPanels * kPanelRows];
  alignas(64) int32_t sums[kPanels * kPanelRows];
  if (pairs <= chunk_pairs) {
    PanelSums<kPanels>(codes, panel_codes, x, 0, pairs, sums);
    for (size_t r = 0; r < kPanels * kPanelRows; r += kWidth) {
      hn::Store(hn::ConvertTo(d, hn::Load(d32, sums + r)), d, products + r);
    }
  } else {
    int64_t totals[kPanels * kPanelRows] = {};
    for (size_t begin = 0; begin < pairs; begin += chunk_pairs) {
      const size_t end = pairs - begin < chunk_pairs ? pairs : begin + chunk_pairs;
      PanelSums<kPanels>(codes, panel_codes, x, begin, end, sums);
      for (size_t r = 0; r < kPanels * kPanelRows; ++r) totals[r] += sums[r];
    }
    for (size_t r = 0; r < kPanels * kPanelRows; ++r) products[r] = static_cast<float>(totals[r]);
  }
  const auto steps = hn::Set(d, step);
  for (size_t r = 0; r < kPanels * kPanelRows; r += kWidth) {
    const size_t row = panel * kPanelRows + r;
    const auto scale = hn::Mul(hn::Load(d, weight.scales + row), steps);
    FinishRows(finish, hn::Mul(hn::Load(d, products + r), scale), row, weight.rows, y);
  }
}

void IntegerProduct(const CodePanels& weight, const int16_t* x, float step, size_t chunk_pairs,
                    const Finish& finish, float* y) {
  // Panels that share a broadcast of x and hide the latency of the additions.
  constexpr size_t kTogether = 4;
  const size_t panels = (weight.rows + kPanelRows - 1) / kPanelRows;
  size_t panel = 0;
  for (; panel + kTogether <= panels; panel += kTogether) {
    IntegerPanels<kTogether>(weight, panel, x, step, chunk_pairs, finish, y);
  }
  for (; panel < panels; ++panel) {
    IntegerPanels<1>(weight, panel, x, step, chunk_pairs, finish, y);
  }
}

void DecodedProduct(const CodePanels& weight, const float* x, const Finish& finish, float* y) {
  const Reals d;
  const hn::RebindToSigned<Reals> d32;
  const hn::Repartition<int16_t, decltype(d32)> d16;
  const size_t panel_codes = (weight.cols + 1) / 2 * 2 * kPanelRows;
  for (size_t row = 0; row < weight.rows; row += kWidth) {
    const int16_t* codes = weight.codes + row / kPanelRows * panel_codes + row % kPanelRows * 2;
    const auto scales = hn::Load(d, weight.scales + row);
    const auto column = [&](size_t even, size_t odd) HWY_ATTR {
      const auto pair = hn::BitCast(d32, hn::Load(d16, codes + even * kPanelRows));
      const auto code = hn::ShiftRight<16>(odd != 0 ? pair : hn::ShiftLeft<16>(pair));
      return hn::Mul(hn::ConvertTo(d, code), scales);
    };
    FinishRows(finish, OrderedColumns(d, x, weight.cols, column), row, weight.rows, y);
  }
}

void RealProduct(const RealPanels& weight, const float* x, const Finish& finish, float* y) {
  const Reals d;
  for (size_t row = 0; row < weight.rows; row += kWidth) {
    const float* values =
        weight.values + row / kPanelRows * weight.cols * kPanelRows + row % kPanelRows;
    const auto column = [&](size_t even, size_t odd)
                            HWY_ATTR { return hn::Load(d, values + (even + odd) * kPanelRows); };
    FinishRows(finish, OrderedColumns(d, x, weight.cols, column), row, weight.rows, y);
  }
}

void IntegerDots(const StridedRows<int16_t>& rows, const int16_t* x, size_t n, float scale,
                 float factor, float* out) {
  // 16 codes at a time; the last vector of a row overlaps the one before, and x holds zeros where
  // it does, so that nothing outside the row is read.
  const hn::CappedTag<int16_t, 16> d16;
  const hn::Repartition<int32_t, decltype(d16)> d32;
  constexpr size_t kCodes = hn::MaxLanes(d16);
  alignas(64) int16_t tail[kCodes] = {};
  const size_t whole = n / kCodes * kCodes;
  if (n >= kCodes && whole < n) {
    std::memcpy(tail + kCodes - (n - whole), x + whole, (n - whole) * sizeof(int16_t));
  }
  for (size_t r = 0; r < rows.count; ++r) {
    const int16_t* row = rows.data + r * rows.stride;
    int32_t sum = 0;
    if (n >= kCodes) {
      auto sums = hn::Zero(d32);
      for (size_t i = 0; i < whole; i += kCodes) {
        sums = AddPairProducts(d32, sums, hn::LoadU(d16, row + i), hn::LoadU(d16, x + i));
      }
      if (whole < n) {
        sums = AddPairProducts(d32, sums, hn::LoadU(d16, row + n - kCodes), hn::Load(d16, tail));
      }
      sum = hn::GetLane(hn::SumOfLanes(d32, sums));
    } else {
      for (size_t i = 0; i < n; ++i) sum += row[i] * x[i];
    }
    out[r] = factor * (static_cast<float>(sum) * scale);
  }
}

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

#endif  // KINGLET_KERNELS_CPU_MATVEC_INL_H_

// Softmax, sums of exponentials, and attention's weighted sums: rules 4 and 5 of docs/NUMERICS.md.
#if defined(KINGLET_KERNELS_CPU_SOFTMAX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KINGLET_KERNELS_CPU_SOFTMAX_INL_H_
#undef KINGLET_KERNELS_CPU_SOFTMAX_INL_H_
#else
#define KINGLET_KERNELS_CPU_SOFTMAX_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "kernels/cpu/exponential-inl.h"
#include "kernels/cpu/largest-inl.h"
#include "kernels/cpu/order-inl.h"
#include "kernels/cpu/vector.h"

HWY_BEFORE_NAMESPACE();
namespace kinglet::cpu::HWY_NAMESPACE {

void Exponentials(const float* x, size_t n, float* out) {
  ForEach(0, n, [&](auto d, size_t i) HWY_ATTR {
    hn::StoreU(ExpVector(d, hn::LoadU(d, x + i)), d, out + i);
  });
}

float Largest(const float* x, size_t n) { return LargestElement(x, n); }

template <bool kFetches>
HWY_INLINE void SumAndFetch(const float* x, size_t n, bool one_chain, const float* largest,
                            const LinesAhead& ahead, float* sums) {
  for (size_t begin = 0; begin < n; begin += kSumTile) {
    const size_t end = n - begin < kSumTile ? n : begin + kSumTile;
    const float reference = TileReference(*largest++);
    const auto add = [&](auto d, auto partial, size_t i) HWY_ATTR {
      if (kFetches && i % kPanelRows == 0) {
        for (const std::byte* const lines : ahead.lines) {
          hwy::Prefetch(lines + i / kPanelRows * kLineBytes);
        }
      }
      const auto shifted = hn::Sub(hn::LoadU(d, x + i), hn::Set(d, reference));
      return hn::Add(partial, SoftmaxTermVector(d, shifted));
    };
    *sums++ = one_chain ? ShortSum(begin, end, add) : TileSum(begin, end, add);
  }
}

void SumLogitTiles(const float* x, size_t n, bool one_chain, const float* largest,
                   const LinesAhead& ahead, float* sums) {
  if (ahead.lines[0] != nullptr) {
    SumAndFetch<true>(x, n, one_chain, largest, ahead, sums);
  } else {
    SumAndFetch<false>(x, n, one_chain, largest, ahead, sums);
  }
}

HWY_INLINE void ReplaceByExponentials(float* x, size_t n, float largest) {
  ForEach(0, n, [&](auto d, size_t i) HWY_ATTR {
    const auto shifted = hn::Sub(hn::LoadU(d, x + i), hn::Set(d, largest));
    hn::StoreU(ExpAtMostOne(d, shifted), d, x + i);
  });
}

float Exponentiate(float* x, size_t n, float largest) {
  ReplaceByExponentials(x, n, largest);
  return Sum(x, n);
}

void CombineScores(const float* dots, const float* positions, float scale, size_t n,
                   float* scores) {
  ForEach(0, n, [&](auto d, size_t i) HWY_ATTR {
    const auto sum = hn::Add(hn::LoadU(d, dots + i), hn::LoadU(d, positions + i));
    hn::StoreU(hn::Mul(sum, hn::Set(d, scale)), d, scores + i);
  });
}

void Softmax(float* x, size_t first, size_t n) {
  const float largest = Largest(x + first, n - first);
  ReplaceByExponentials(x + first, n - first, largest);
  const size_t row = first / kSumChains * kSumChains;
  std::fill(x + row, x + first, 0.0f);
  const float total = SumFrom(x, row, n);
  ForEach(first, n, [&](auto d, size_t i) HWY_ATTR {
    hn::StoreU(hn::Div(hn::LoadU(d, x + i), hn::Set(d, total)), d, x + i);
  });
}

void WeightedFloats(const float* values, const size_t* offsets, const float* weights, size_t count,
                    size_t width, float* out) {
  ForEachOverlapping(width, [&](auto d, size_t c) HWY_ATTR {
    const auto column = [&](size_t base, size_t offset)
                            HWY_ATTR { return hn::LoadU(d, values + offsets[base + offset] + c); };
    hn::StoreU(OrderedColumns(d, weights, count, column), d, out + c);
  });
}

}  // namespace kinglet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // KINGLET_KERNELS_CPU_SOFTMAX_INL_H_

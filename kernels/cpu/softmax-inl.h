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
#include "kernels/cache_weight.h"
#include "kernels/cpu/division-inl.h"
#include "kernels/cpu/exponential-inl.h"
#include "kernels/cpu/highway-inl.h"
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
    const auto sum = [&](const auto& logit) HWY_ATTR {
      const auto add = [&](auto d, auto partial, size_t i) HWY_ATTR {
        if (kFetches && i % kPanelRows == 0) {
          for (const std::byte* const lines : ahead.lines) {
            hwy::Prefetch(lines + i / kPanelRows * kLineBytes);
          }
        }
        return hn::Add(partial, SoftmaxTermVector(d, logit(d, i)));
      };
      return one_chain ? ShortSum(begin, end, add) : TileSum(begin, end, add);
    };
    if (reference == 0.0f) {
      *sums++ = sum([&](auto d, size_t i) HWY_ATTR { return hn::LoadU(d, x + i); });
    } else {
      *sums++ = sum([&](auto d, size_t i)
                        HWY_ATTR { return hn::Sub(hn::LoadU(d, x + i), hn::Set(d, reference)); });
    }
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

// The sum of n weights. Sums of up to 2^13 weights are exact in double.
HWY_INLINE float SumWeights(const float* x, size_t n) {
  constexpr size_t kExact = size_t{1} << 12;
#if HWY_HAVE_FLOAT64
  constexpr size_t kUnroll = 4;
  const hn::CappedTag<double, kSumChains / 2> d;
  const hn::Rebind<float, decltype(d)> of_floats;
  constexpr size_t kLanes = hn::MaxLanes(d);
#endif
  uint64_t units = 0;
  for (size_t begin = 0; begin < n; begin += kExact) {
    const size_t end = n - begin < kExact ? n : begin + kExact;
    size_t i = begin;
    double sum = 0;
#if HWY_HAVE_FLOAT64
    hn::Vec<decltype(d)> sums[kUnroll];
    for (auto& chain : sums) chain = hn::Zero(d);
    for (; i + kUnroll * kLanes <= end; i += kUnroll * kLanes) {
      for (size_t u = 0; u < kUnroll; ++u) {
        const auto weights = hn::LoadU(of_floats, x + i + u * kLanes);
        sums[u] = hn::Add(sums[u], hn::PromoteTo(d, weights));
      }
    }
    const auto all = hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3]));
    sum = hn::GetLane(hn::SumOfLanes(d, all));
#endif
    for (; i < end; ++i) sum += static_cast<double>(x[i]);
    units = AddUnits(units, WholeUnits(sum));
  }
  return WeightOfUnits<float>(units);
}

float CacheWeights(float* x, size_t n) {
  const float largest = Largest(x, n);
  ForEach(0, n, [&](auto d, size_t i) HWY_ATTR {
    const auto e = ExpAtMostOne(d, hn::Sub(hn::LoadU(d, x + i), hn::Set(d, largest)));
    // From 2^-17 on a float is a multiple of 2^-40. Below, a sum with 2^-17 rounds to one.
    const auto small = hn::Set(d, 0x1p-17f);
    const auto rounded = hn::Sub(hn::Add(e, small), small);
    hn::StoreU(hn::IfThenElse(hn::Lt(e, small), rounded, e), d, x + i);
  });
  return SumWeights(x, n);
}

void CombineScores(const float* dots, const float* positions, float scale, size_t n,
                   float* scores) {
  ForEach(0, n, [&](auto d, size_t i) HWY_ATTR {
    const auto sum = hn::Add(hn::LoadU(d, dots + i), hn::LoadU(d, positions + i));
    hn::StoreU(hn::Mul(sum, hn::Set(d, scale)), d, scores + i);
  });
}

// Elements from `row` on are computed with those that follow, as full vectors.
void Softmax(float* x, size_t first, size_t n) {
  const float largest = Largest(x + first, n - first);
  const size_t row = first / kSumChains * kSumChains;
  ReplaceByExponentials(x + row, n - row, largest);
  std::fill(x + row, x + first, 0.0f);
  const Divisor total(SumFrom(x, row, n));
  ForEach(row, n, [&](auto d, size_t i) HWY_ATTR {
    hn::StoreU(total.Quotient(d, hn::LoadU(d, x + i)), d, x + i);
  });
  std::fill(x + row, x + first, 0.0f);
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

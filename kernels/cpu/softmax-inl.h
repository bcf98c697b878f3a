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

#include "hwy/highway.h"
#include "kernels/cpu/exponential-inl.h"
#include "kernels/cpu/order-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kinglet::cpu::HWY_NAMESPACE {

void Exponentials(const float* x, size_t n, float* out) {
  ForEach(0, n, [&](auto d, size_t i) HWY_ATTR {
    hn::StoreU(ExpVector(d, hn::LoadU(d, x + i)), d, out + i);
  });
}

// NaN never wins a comparison, so it is returned only from x[0]; of zeros the first is returned.
float Largest(const float* x, size_t n) {
  constexpr size_t kUnroll = 4;
  const Reals d;
  float largest = x[0];
  if (largest != largest) return largest;
  size_t i = 0;
  if (n >= kWidth) {
    hn::Vec<Reals> best[kUnroll];
    for (auto& b : best) b = hn::Set(d, x[0]);
    const auto take = [&](size_t u, size_t at) HWY_ATTR {
      const auto v = hn::LoadU(d, x + at);
#if HWY_ARCH_X86
      best[u] = hn::Max(v, best[u]);  // the second, where neither is larger or one is NaN
#else
      best[u] = hn::IfThenElse(hn::Gt(v, best[u]), v, best[u]);
#endif
    };
    for (; i + kUnroll * kWidth <= n; i += kUnroll * kWidth) {
      for (size_t u = 0; u < kUnroll; ++u) take(u, i + u * kWidth);
    }
    for (; i + kWidth <= n; i += kWidth) take(0, i);
    take(1, n - kWidth);  // may overlap what was taken already
    i = n;
    const auto most = hn::Max(hn::Max(best[0], best[1]), hn::Max(best[2], best[3]));
    largest = hn::GetLane(hn::MaxOfLanes(d, most));
  }
  for (; i < n; ++i) largest = x[i] > largest ? x[i] : largest;
  if (largest == 0.0f) {
    for (i = 0; x[i] != 0.0f;) ++i;
    return x[i];
  }
  return largest;
}

void SumLogitBlocks(const float* x, size_t n, bool one_chain, float* largest, float* sums) {
  for (size_t begin = 0; begin < n; begin += kSumBlock) {
    const size_t end = n - begin < kSumBlock ? n : begin + kSumBlock;
    *largest = Largest(x + begin, end - begin);
    const float reference = BlockReference(*largest++);
    const auto add = [&](auto d, auto partial, size_t i) HWY_ATTR {
      const auto shifted = hn::Sub(hn::LoadU(d, x + i), hn::Set(d, reference));
      return hn::Add(partial, SoftmaxTermVector(d, shifted));
    };
    *sums++ = one_chain ? ShortSum(begin, end, add) : BlockSum(begin, end, add);
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

void WeightedReals(const float* values, const size_t* offsets, const float* weights, size_t count,
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

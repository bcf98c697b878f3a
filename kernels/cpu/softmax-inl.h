// Exponentials, their sums, and attention's weighted sums: rules 4 and 5 of docs/NUMERICS.md.
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
#include "kernels/cpu/order-inl.h"
#include "kernels/functions.h"

HWY_BEFORE_NAMESPACE();
namespace kinglet::cpu::HWY_NAMESPACE {

// y * 2^n for integral n, rounded once.
#if HWY_TARGET == HWY_AVX3
HWY_INLINE hn::Vec512<float> ScaleByPower(hn::Vec512<float> y, hn::Vec512<float> n) {
  return hn::Vec512<float>{_mm512_scalef_ps(y.raw, n.raw)};
}
HWY_INLINE hn::Vec<Real> ScaleByPower(hn::Vec<Real> y, hn::Vec<Real> n) {
  return hn::Vec<Real>{_mm_scalef_ps(y.raw, n.raw)};
}
#else
template <class V>
HWY_INLINE V ScaleByPower(V y, V n) {
  const hn::DFromV<V> d;
  const hn::RebindToSigned<decltype(d)> d32;
  // Two factors, of which both are normal numbers; the halves may differ from the reference's by
  // one each (rounded down, not towards zero), but only the last multiplication rounds.
  const auto k = hn::ConvertTo(d32, n);
  const auto k1 = hn::ShiftRight<1>(k);
  const auto k2 = hn::Sub(k, k1);
  const auto bias = hn::Set(d32, 127);
  const auto s1 = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(k1, bias)));
  const auto s2 = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(k2, bias)));
  return hn::Mul(hn::Mul(y, s1), s2);
}
#endif

// From here on exp(x) = y * 2^n is a normal number: y >= 0.7, n >= -125.
constexpr float kSmallestNormal = -86.0f;

// exp(x) for x that is not above zero, or is NaN: the sequence of kernels/functions.h, lane by
// lane.
template <class D>
HWY_INLINE hn::Vec<D> ExpAtMostOne(D d, hn::Vec<D> x) {
  using C = ExpConstants;
  const auto round = hn::Set(d, C::kRound);
  const auto shifted = hn::MulAdd(x, hn::Set(d, C::kLog2E), round);
  const auto n = hn::Sub(shifted, round);
  auto r = hn::MulAdd(n, hn::Set(d, -C::kLn2High), x);
  r = hn::MulAdd(n, hn::Set(d, -C::kLn2Low), r);
  auto p = hn::Set(d, C::kC7);
  p = hn::MulAdd(p, r, hn::Set(d, C::kC6));
  p = hn::MulAdd(p, r, hn::Set(d, C::kC5));
  p = hn::MulAdd(p, r, hn::Set(d, C::kC4));
  p = hn::MulAdd(p, r, hn::Set(d, C::kC3));
  p = hn::MulAdd(p, r, hn::Set(d, C::kC2));
  const auto q = hn::MulAdd(hn::Mul(r, r), p, r);
  const auto y = hn::Add(hn::Set(d, 1.0f), q);
  if (HWY_LIKELY(hn::AllTrue(d, hn::Ge(x, hn::Set(d, kSmallestNormal))))) {
    // n is the low bits of `shifted`, and goes into the exponent without a multiplication.
    const hn::RebindToSigned<D> d32;
    const auto power = hn::ShiftLeft<23>(hn::BitCast(d32, shifted));
    return hn::BitCast(d, hn::Add(hn::BitCast(d32, y), power));
  }
  const auto result = ScaleByPower(y, n);
  // NaN came through unharmed; beyond the end everything computed so far is nonsense.
  return hn::IfThenElse(hn::Lt(x, hn::Set(d, C::kUnderflow)), hn::Zero(d), result);
}

// For every x.
template <class D>
HWY_INLINE hn::Vec<D> ExpVector(D d, hn::Vec<D> x) {
  const hn::RebindToSigned<D> d32;
  const auto infinity = hn::BitCast(d, hn::Set(d32, 0x7f800000));
  return hn::IfThenElse(hn::Gt(x, hn::Set(d, ExpConstants::kOverflow)), infinity,
                        ExpAtMostOne(d, x));
}

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
      best[u] = hn::IfThenElse(hn::Gt(v, best[u]), v, best[u]);
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

// Differences from the largest are at most zero, or NaN.
void SumExponentials(const float* x, size_t n, float largest, float* blocks) {
  const auto add = [&](auto d, auto partial, size_t i) HWY_ATTR {
    const auto shifted = hn::Sub(hn::LoadU(d, x + i), hn::Set(d, largest));
    return hn::Add(partial, ExpAtMostOne(d, shifted));
  };
  ForEachBlockSum(n, add, [&](float sum) HWY_ATTR { *blocks++ = sum; });
}

// The sum of x[i] for i < n, where those before `first`, a multiple of 16, are +0.
HWY_INLINE float SumFrom(const float* x, size_t first, size_t n) {
  return OrderedSum(first, n, [&](auto d, auto partial, size_t i) HWY_ATTR {
    return hn::Add(partial, hn::LoadU(d, x + i));
  });
}

HWY_INLINE float Sum(const float* x, size_t n) { return SumFrom(x, 0, n); }

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

void CombineScores(const float* positions, float scale, size_t n, float* scores) {
  ForEach(0, n, [&](auto d, size_t i) HWY_ATTR {
    const auto sum = hn::Add(hn::LoadU(d, scores + i), hn::LoadU(d, positions + i));
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

// Runs body(d, c) over [0, width): whole vectors, the last one overlapping the one before; single
// elements where the width is below one vector. Elements are independent, so computing one twice
// is harmless.
template <class Body>
HWY_INLINE void ForEachOverlapping(size_t width, const Body& body) {
  if (width < kWidth) {
    for (size_t c = 0; c < width; ++c) body(Real(), c);
    return;
  }
  for (size_t c = 0; c + kWidth <= width; c += kWidth) body(Reals(), c);
  if (width % kWidth != 0) body(Reals(), width - kWidth);
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

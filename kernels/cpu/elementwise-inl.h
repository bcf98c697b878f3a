// Layer normalisation, quantising, the residual sum: kernels/ref/elementwise.h and quantise.h in
// vectors.
#if defined(KINGLET_KERNELS_CPU_ELEMENTWISE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KINGLET_KERNELS_CPU_ELEMENTWISE_INL_H_
#undef KINGLET_KERNELS_CPU_ELEMENTWISE_INL_H_
#else
#define KINGLET_KERNELS_CPU_ELEMENTWISE_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/division-inl.h"
#include "kernels/cpu/highway-inl.h"
#include "kernels/cpu/order-inl.h"
#include "kernels/numerics.h"

HWY_BEFORE_NAMESPACE();
namespace kinglet::cpu::HWY_NAMESPACE {

void LayerNormalise(const float* x, size_t n, const float* gain, const float* bias, float epsilon,
                    float* y) {
  const float mean = Sum(x, n) / static_cast<float>(n);
  const float squares = OrderedSum(n, [&](auto d, auto partial, size_t i) HWY_ATTR {
    const auto centred = hn::Sub(hn::LoadU(d, x + i), hn::Set(d, mean));
    return hn::MulAdd(centred, centred, partial);
  });
  const float variance = squares / static_cast<float>(n);
  const Divisor deviation(hn::GetLane(hn::Sqrt(hn::Set(Real(), variance + epsilon))));
  ForEach(0, n, [&](auto d, size_t i) HWY_ATTR {
    const auto centred = hn::Sub(hn::LoadU(d, x + i), hn::Set(d, mean));
    const auto normalised = deviation.Quotient(d, centred);
    const auto scaled = hn::Mul(normalised, hn::LoadU(d, gain + i));
    hn::StoreU(hn::Add(scaled, hn::LoadU(d, bias + i)), d, y + i);
  });
}

// v clamped to [-limit, limit]. NaN, for which both comparisons are false, becomes -limit.
template <class D, class V>
HWY_INLINE V Clamped(D d, V x, float limit) {
  const auto high = hn::Set(d, limit), low = hn::Set(d, -limit);
  return hn::IfThenElse(hn::Ge(x, low), hn::IfThenElse(hn::Le(x, high), x, high), low);
}

// Stores round_half_even(x). REQUIRES: the results fit in 16 bits.
template <class D, class V>
HWY_INLINE void StoreCodes([[maybe_unused]] D d, V x, int16_t* codes) {
  const hn::Rebind<int16_t, D> d16;
  hn::StoreU(hn::DemoteTo(d16, hn::NearestInt(x)), d16, codes);
}

void QuantiseFloats(const float* x, size_t n, float max_abs, float scale, int16_t* codes) {
  const Divisor divisor(scale);
  ForEachOverlapping(n, [&](auto d, size_t i) HWY_ATTR {
    const auto clamped = Clamped(d, hn::LoadU(d, x + i), max_abs);
    StoreCodes(d, divisor.NearQuotient(d, clamped), codes + i);
  });
}

// The largest |x[i]|, where NaN never wins a comparison; 0 if n is 0.
float LargestMagnitude(const float* x, size_t n) {
  const Floats d;
  auto best = hn::Zero(d);
  size_t i = 0;
  for (; i + kWidth <= n; i += kWidth) {
    const auto magnitude = hn::Abs(hn::LoadU(d, x + i));
    best = hn::IfThenElse(hn::Gt(magnitude, best), magnitude, best);
  }
  alignas(64) float elements[kWidth];
  hn::Store(best, d, elements);
  float largest = 0.0f;
  for (const float element : elements) largest = element > largest ? element : largest;
  for (; i < n; ++i) {
    const float magnitude = hn::GetLane(hn::Abs(hn::Set(Real(), x[i])));
    largest = magnitude > largest ? magnitude : largest;
  }
  return largest;
}

void FixedPoint(const float* x, size_t n, float scale, int16_t* codes) {
  ForEach(0, n, [&](auto d, size_t i) HWY_ATTR {
    const auto quotient = hn::Div(hn::LoadU(d, x + i), hn::Set(d, scale));
    StoreCodes(d, Clamped(d, quotient, static_cast<float>(kFixedPointLimit)), codes + i);
  });
}

template <class D>
HWY_INLINE hn::Vec<D> Dequantised(D d, const int16_t* codes, float scale) {
  const hn::RebindToSigned<D> d32;
  const hn::Rebind<int16_t, D> d16;
  const auto code = hn::PromoteTo(d32, hn::LoadU(d16, codes));
  return hn::Mul(hn::ConvertTo(d, code), hn::Set(d, scale));
}

void Dequantise(const int16_t* codes, size_t n, float scale, float* out) {
  ForEachOverlapping(n, [&](auto d, size_t i)
                            HWY_ATTR { hn::StoreU(Dequantised(d, codes + i, scale), d, out + i); });
}

void AddFloats(const float* x, size_t n, float* y) {
  ForEach(0, n, [&](auto d, size_t i) HWY_ATTR {
    hn::StoreU(hn::Add(hn::LoadU(d, y + i), hn::LoadU(d, x + i)), d, y + i);
  });
}

void AddCodes(const int16_t* codes, float scale, size_t n, float* y) {
  ForEach(0, n, [&](auto d, size_t i) HWY_ATTR {
    hn::StoreU(hn::Add(hn::LoadU(d, y + i), Dequantised(d, codes + i, scale)), d, y + i);
  });
}

void Scale(float factor, size_t n, float* y) {
  ForEach(0, n, [&](auto d, size_t i) HWY_ATTR {
    hn::StoreU(hn::Mul(hn::LoadU(d, y + i), hn::Set(d, factor)), d, y + i);
  });
}

}  // namespace kinglet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // KINGLET_KERNELS_CPU_ELEMENTWISE_INL_H_

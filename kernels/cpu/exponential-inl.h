// The exponential of kernels/functions.h in vectors.
#if defined(KINGLET_KERNELS_CPU_EXPONENTIAL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KINGLET_KERNELS_CPU_EXPONENTIAL_INL_H_
#undef KINGLET_KERNELS_CPU_EXPONENTIAL_INL_H_
#else
#define KINGLET_KERNELS_CPU_EXPONENTIAL_INL_H_
#endif

#include "kernels/cpu/highway-inl.h"
#include "kernels/cpu/order-inl.h"
#include "kernels/functions.h"

HWY_BEFORE_NAMESPACE();
namespace kinglet::cpu::HWY_NAMESPACE {

// y * 2^n for integral n, rounded once.
#if HWY_TARGET == HWY_AVX3
HWY_INLINE hn::Vec512<float> ScaleByPower(hn::Vec512<float> y, hn::Vec512<float> n) {
  return hn::Vec512<float>{_mm512_scalef_ps(y.raw, n.raw)};
}
template <size_t kN>
HWY_INLINE hn::Vec128<float, kN> ScaleByPower(hn::Vec128<float, kN> y, hn::Vec128<float, kN> n) {
  return hn::Vec128<float, kN>{_mm_scalef_ps(y.raw, n.raw)};
}
#else
template <class V>
HWY_INLINE V ScaleByPower(V y, V n) {
  const hn::DFromV<V> d;
  const hn::RebindToSigned<decltype(d)> d32;
  // Two factors, both normal numbers. Each exponent may differ from the reference's by one (rounded
  // down, not towards zero), but only the last multiplication rounds, so the result is equal.
  const auto k = hn::ConvertTo(d32, n);
  const auto k1 = hn::ShiftRight<1>(k);
  const auto k2 = hn::Sub(k, k1);
  const auto bias = hn::Set(d32, 127);
  const auto s1 = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(k1, bias)));
  const auto s2 = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(k2, bias)));
  return hn::Mul(hn::Mul(y, s1), s2);
}
#endif

// For x from kSmallestNormal on, exp(x) = y * 2^n is a normal number: y >= 0.7, n >= -125.
constexpr float kSmallestNormal = -86.0f;

// exp(x) for x that is not above zero, or is NaN: the sequence of kernels/functions.h, element
// by element.
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
  // NaN is still NaN. Below kUnderflow the result has no meaning and is replaced by 0.
  return hn::IfThenElse(hn::Lt(x, hn::Set(d, C::kUnderflow)), hn::Zero(d), result);
}

// exp(x) for every x.
template <class D>
HWY_INLINE hn::Vec<D> ExpVector(D d, hn::Vec<D> x) {
  const hn::RebindToSigned<D> d32;
  const auto infinity = hn::BitCast(d, hn::Set(d32, 0x7f800000));
  return hn::IfThenElse(hn::Gt(x, hn::Set(d, ExpConstants::kOverflow)), infinity,
                        ExpAtMostOne(d, x));
}

// SoftmaxTerm of kernels/functions.h, element by element. x is at most 64, or is a NaN that a
// processor of this kind made: its nine low bits are zeros.
template <class D>
HWY_INLINE hn::Vec<D> SoftmaxTermVector(D d, hn::Vec<D> x) {
  using C = SoftmaxTermConstants;
#if HWY_ARCH_X86
  // If one operand is NaN, the instruction returns its second operand, which keeps NaN here.
  const auto at_least = hn::Max(hn::Set(d, C::kLeast), x);
#else
  const auto at_least = hn::IfThenElse(hn::Lt(x, hn::Set(d, C::kLeast)), hn::Set(d, C::kLeast), x);
#endif
  const auto round = hn::Set(d, ExpConstants::kRound), log2e = hn::Set(d, ExpConstants::kLog2E);
  const auto shifted = hn::MulAdd(at_least, log2e, round);
  const auto f = hn::MulSub(at_least, log2e, hn::Sub(shifted, round));
  auto p = hn::Set(d, C::kC5);
  p = hn::MulAdd(p, f, hn::Set(d, C::kC4));
  p = hn::MulAdd(p, f, hn::Set(d, C::kC3));
  p = hn::MulAdd(p, f, hn::Set(d, C::kC2));
  p = hn::MulAdd(p, f, hn::Set(d, C::kC1));
  const hn::RebindToSigned<D> d32;
  const auto y = hn::BitCast(d32, hn::MulAdd(p, f, hn::Set(d, 1.0f)));
  return hn::BitCast(d, hn::Add(y, hn::ShiftLeft<23>(hn::BitCast(d32, shifted))));
}

}  // namespace kinglet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // KINGLET_KERNELS_CPU_EXPONENTIAL_INL_H_

// Many floats divided by one, with the bits of hn::Div in a third of its time.
#if defined(KINGLET_KERNELS_CPU_DIVISION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KINGLET_KERNELS_CPU_DIVISION_INL_H_
#undef KINGLET_KERNELS_CPU_DIVISION_INL_H_
#else
#define KINGLET_KERNELS_CPU_DIVISION_INL_H_
#endif

#include "format/small_build.h"
#include "kernels/cpu/highway-inl.h"
#include "kernels/cpu/order-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kinglet::cpu::HWY_NAMESPACE {

// A product with the rounded reciprocal is less than two units in the last place from the quotient.
// The first correction by the remainder brings it within one unit. The second rounds it correctly
// (Markstein, Computation of elementary functions on the IBM RISC System/6000, theorem 2), because
// the remainder is then exact. Both need numbers that are far from underflow and overflow.
class Divisor {
 public:
  HWY_INLINE explicit Divisor(float value)
      : value_(value),
        reciprocal_(1.0f / value),
        is_moderate_(kIsWorthwhile && value >= 0x1p-40f && value <= 0x1p40f) {}

  // x / value.
  template <class D>
  HWY_INLINE hn::Vec<D> Quotient(D d, hn::Vec<D> x) const {
    const auto magnitude = hn::Abs(x);
    const auto moderate =
        hn::And(hn::Ge(magnitude, hn::Set(d, 0x1p-60f)), hn::Le(magnitude, hn::Set(d, 0x1p60f)));
    if (HWY_LIKELY(is_moderate_ && hn::AllTrue(d, moderate))) return ByReciprocal(d, x);
    return hn::Div(x, hn::Set(d, value_));
  }
  // A number that rounds to the integer to which x / value rounds. REQUIRES: |x| <= 2^60, and x is
  // not NaN.
  template <class D>
  HWY_INLINE hn::Vec<D> NearQuotient(D d, hn::Vec<D> x) const {
    return HWY_LIKELY(is_moderate_) ? ByReciprocal(d, x) : hn::Div(x, hn::Set(d, value_));
  }

 private:
  // WebAssembly has no fused multiply-add, and the small library no room.
  static constexpr bool kIsWorthwhile = HWY_TARGET != HWY_WASM && !kSmallBuild;

  template <class D>
  HWY_INLINE hn::Vec<D> ByReciprocal(D d, hn::Vec<D> x) const {
    const auto value = hn::Set(d, value_), reciprocal = hn::Set(d, reciprocal_);
    const auto near = hn::Mul(x, reciprocal);
    const auto nearer = hn::MulAdd(hn::NegMulAdd(near, value, x), reciprocal, near);
    return hn::MulAdd(hn::NegMulAdd(nearer, value, x), reciprocal, nearer);
  }

  float value_, reciprocal_;
  bool is_moderate_;
};

}  // namespace kinglet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // KINGLET_KERNELS_CPU_DIVISION_INL_H_

// kernels/ref/recurrent.h in vectors: sigmoid, hyperbolic tangent and the element-wise part of
// recurrent cells.
#if defined(KINGLET_KERNELS_CPU_RECURRENT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KINGLET_KERNELS_CPU_RECURRENT_INL_H_
#undef KINGLET_KERNELS_CPU_RECURRENT_INL_H_
#else
#define KINGLET_KERNELS_CPU_RECURRENT_INL_H_
#endif

#include <cstddef>

#include "kernels/cpu/exponential-inl.h"
#include "kernels/cpu/highway-inl.h"
#include "kernels/cpu/order-inl.h"
#include "kernels/functions.h"

HWY_BEFORE_NAMESPACE();
namespace kinglet::cpu::HWY_NAMESPACE {

// The sequences of kernels/functions.h, element by element.
template <class D>
HWY_INLINE hn::Vec<D> SigmoidVector(D d, hn::Vec<D> x) {
  const auto one = hn::Set(d, 1.0f);
  const auto negative = hn::Lt(x, hn::Zero(d));
  const auto e = ExpVector(d, hn::IfThenElse(negative, x, hn::Neg(x)));
  const auto numerator = hn::IfThenElse(negative, e, one);
  const auto sum = hn::Add(one, e);
  const auto quotient = hn::Div(numerator, sum);
  const auto lost = hn::Sub(e, hn::Sub(sum, one));
  const auto remainder = hn::NegMulAdd(quotient, sum, numerator);
  const auto inverse = hn::IfThenElse(negative, hn::Sub(one, quotient), quotient);
  return hn::MulAdd(hn::NegMulAdd(quotient, lost, remainder), inverse, quotient);
}

template <class D>
HWY_INLINE hn::Vec<D> TanhVector(D d, hn::Vec<D> x) {
  using C = TanhConstants;
  const auto z = hn::Mul(x, x);
  auto p = hn::Set(d, C::kC4);
  p = hn::MulAdd(p, z, hn::Set(d, C::kC3));
  p = hn::MulAdd(p, z, hn::Set(d, C::kC2));
  p = hn::MulAdd(p, z, hn::Set(d, C::kC1));
  p = hn::MulAdd(p, z, hn::Set(d, C::kC0));
  const auto one = hn::Set(d, 1.0f), two = hn::Set(d, 2.0f);
  const auto magnitude = hn::Abs(x);
  const auto small = hn::MulAdd(hn::Mul(z, p), magnitude, magnitude);
  const auto e = ExpVector(d, hn::Mul(two, magnitude));
  const auto large = hn::Sub(one, hn::Div(two, hn::Add(e, one)));
  const auto y = hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, C::kSmall)), small, large);
  return hn::CopySign(y, x);
}

void Sigmoids(const float* x, size_t n, float* out) {
  ForEach(0, n, [&](auto d, size_t i) HWY_ATTR {
    hn::StoreU(SigmoidVector(d, hn::LoadU(d, x + i)), d, out + i);
  });
}

template <class D>
HWY_INLINE hn::Vec<D> GeluVector(D d, hn::Vec<D> x) {
  using C = GeluConstants;
  const auto far = hn::Set(d, C::kFar), centre = hn::Set(d, C::kCentre);
  const auto magnitude = hn::Abs(x);
  const auto a = hn::IfThenElse(hn::Gt(magnitude, far), far, magnitude);
  const auto v = hn::Div(hn::Sub(a, centre), hn::Add(a, centre));
  auto r = hn::Set(d, C::kC9);
  r = hn::MulAdd(r, v, hn::Set(d, C::kC8));
  r = hn::MulAdd(r, v, hn::Set(d, C::kC7));
  r = hn::MulAdd(r, v, hn::Set(d, C::kC6));
  r = hn::MulAdd(r, v, hn::Set(d, C::kC5));
  r = hn::MulAdd(r, v, hn::Set(d, C::kC4));
  r = hn::MulAdd(r, v, hn::Set(d, C::kC3));
  r = hn::MulAdd(r, v, hn::Set(d, C::kC2));
  r = hn::MulAdd(r, v, hn::Set(d, C::kC1));
  r = hn::MulAdd(r, v, hn::Set(d, C::kC0));
  const auto square = hn::Mul(a, a);
  const auto lost = hn::MulSub(a, a, square);
  const auto minus_half = hn::Set(d, -0.5f);
  const auto e = ExpAtMostOne(d, hn::Mul(minus_half, square));
  const auto beyond = hn::Mul(hn::MulAdd(hn::Mul(minus_half, lost), e, e), r);
  const auto negative = hn::Lt(x, hn::Zero(d));
  return hn::Mul(x, hn::IfThenElse(negative, beyond, hn::Sub(hn::Set(d, 1.0f), beyond)));
}

void Gelus(const float* x, size_t n, float* out) {
  ForEach(0, n, [&](auto d, size_t i) HWY_ATTR {
    hn::StoreU(GeluVector(d, hn::LoadU(d, x + i)), d, out + i);
  });
}

void Swishes(const float* x, size_t n, float* out) {
  ForEach(0, n, [&](auto d, size_t i) HWY_ATTR {
    const auto vector = hn::LoadU(d, x + i);
    hn::StoreU(hn::Mul(vector, SigmoidVector(d, vector)), d, out + i);
  });
}

void TanhGelus(const float* x, size_t n, float* out) {
  using C = TanhGeluConstants<float>;
  ForEach(0, n, [&](auto d, size_t i) HWY_ATTR {
    const auto vector = hn::LoadU(d, x + i);
    const auto third = hn::Mul(hn::Set(d, C::kThird), hn::Mul(vector, vector));
    const auto twice = hn::Mul(vector, hn::Add(hn::Set(d, C::kFirst), third));
    hn::StoreU(hn::Mul(vector, SigmoidVector(d, twice)), d, out + i);
  });
}

void Tangents(const float* x, size_t n, float* out) {
  ForEach(0, n, [&](auto d, size_t i) HWY_ATTR {
    hn::StoreU(TanhVector(d, hn::LoadU(d, x + i)), d, out + i);
  });
}

// input + recurrent, element i of gate b.
template <class D>
HWY_INLINE hn::Vec<D> Gate(D d, const float* input, const float* recurrent, size_t at) {
  return hn::Add(hn::LoadU(d, input + at), hn::LoadU(d, recurrent + at));
}

void UpdateLstm(const float* input, const float* recurrent, size_t n, float* cell, float* hidden) {
  ForEach(0, n, [&](auto d, size_t i) HWY_ATTR {
    const auto forget = SigmoidVector(d, Gate(d, input, recurrent, n + i));
    const auto kept = hn::Mul(forget, hn::LoadU(d, cell + i));
    const auto open = SigmoidVector(d, Gate(d, input, recurrent, i));
    const auto added = hn::Mul(open, TanhVector(d, Gate(d, input, recurrent, 2 * n + i)));
    const auto state = hn::Add(kept, added);
    hn::StoreU(state, d, cell + i);
    const auto out = SigmoidVector(d, Gate(d, input, recurrent, 3 * n + i));
    hn::StoreU(hn::Mul(out, TanhVector(d, state)), d, hidden + i);
  });
}

void UpdateGru(const float* input, const float* recurrent, size_t n, float* hidden) {
  ForEach(0, n, [&](auto d, size_t i) HWY_ATTR {
    const auto reset = SigmoidVector(d, Gate(d, input, recurrent, i));
    const auto keep = SigmoidVector(d, Gate(d, input, recurrent, n + i));
    const auto scaled = hn::Mul(reset, hn::LoadU(d, recurrent + 2 * n + i));
    const auto candidate = TanhVector(d, hn::Add(hn::LoadU(d, input + 2 * n + i), scaled));
    const auto fresh = hn::Mul(hn::Sub(hn::Set(d, 1.0f), keep), candidate);
    const auto kept = hn::Mul(keep, hn::LoadU(d, hidden + i));
    hn::StoreU(hn::Add(fresh, kept), d, hidden + i);
  });
}

void UpdateRnn(const float* input, const float* recurrent, size_t n, bool relu, float* hidden) {
  ForEach(0, n, [&](auto d, size_t i) HWY_ATTR {
    const auto sum = Gate(d, input, recurrent, i);
    const auto zero = hn::Zero(d);
    hn::StoreU(relu ? hn::IfThenElse(hn::Gt(sum, zero), sum, zero) : TanhVector(d, sum), d,
               hidden + i);
  });
}

void UpdateQrnn(const float* input, const float* previous, size_t n, float* cell, float* hidden) {
  ForEach(0, n, [&](auto d, size_t i) HWY_ATTR {
    const auto gate = [&](size_t gate_index) HWY_ATTR {
      const auto own = hn::LoadU(d, input + gate_index * n + i);
      return previous != nullptr ? hn::Add(own, hn::LoadU(d, previous + gate_index * n + i)) : own;
    };
    const auto forget = SigmoidVector(d, gate(1));
    const auto fresh = hn::Mul(forget, TanhVector(d, gate(0)));
    const auto kept = hn::Mul(hn::Sub(hn::Set(d, 1.0f), forget), hn::LoadU(d, cell + i));
    const auto state = hn::Add(fresh, kept);
    hn::StoreU(state, d, cell + i);
    hn::StoreU(hn::Mul(SigmoidVector(d, gate(2)), state), d, hidden + i);
  });
}

}  // namespace kinglet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // KINGLET_KERNELS_CPU_RECURRENT_INL_H_

// Highway as `hn`, with fused multiply-adds. Where the target has none, Highway's MulAdd and its
// like round twice; there `hn` has its own, which FusedByDouble (kernels/fused.h) explains.
#if defined(KINGLET_KERNELS_CPU_HIGHWAY_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KINGLET_KERNELS_CPU_HIGHWAY_INL_H_
#undef KINGLET_KERNELS_CPU_HIGHWAY_INL_H_
#else
#define KINGLET_KERNELS_CPU_HIGHWAY_INL_H_
#endif

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace kinglet::cpu::HWY_NAMESPACE {

#if HWY_TARGET == HWY_WASM
namespace fused {

using namespace hwy::HWY_NAMESPACE;

// The sums, two of four, with the last bit set by the error where the sum ends in 28 zeros.
HWY_INLINE __f64x2 RoundedToOdd(__f64x2 product, __f64x2 c, __f64x2 sum) {
  const auto other = wasm_f64x2_sub(sum, product);
  const auto error =
      wasm_f64x2_add(wasm_f64x2_sub(product, wasm_f64x2_sub(sum, other)), wasm_f64x2_sub(c, other));
  const auto zero = wasm_f64x2_const_splat(0.0);
  const auto above = wasm_f64x2_gt(error, zero), below = wasm_f64x2_lt(error, zero);
  const auto positive = wasm_f64x2_gt(sum, zero);
  // All ones, which is -1, where the bits become fewer.
  const auto fewer = wasm_v128_xor(above, positive);
  const auto change = wasm_v128_or(fewer, wasm_i64x2_const_splat(1));
  const auto ends_in_zeros = wasm_i64x2_eq(wasm_v128_and(sum, wasm_i64x2_const_splat(0xFFFFFFF)),
                                           wasm_i64x2_const_splat(0));
  const auto wanted = wasm_v128_and(ends_in_zeros, wasm_v128_or(above, below));
  return wasm_i64x2_add(sum, wasm_v128_and(change, wanted));
}

template <size_t kN>
HWY_INLINE Vec128<float, kN> MulAdd(Vec128<float, kN> a, Vec128<float, kN> b, Vec128<float, kN> c) {
  const auto low = [](v128_t v) { return wasm_f64x2_promote_low_f32x4(v); };
  const auto high = [](v128_t v) {
    return wasm_f64x2_promote_low_f32x4(wasm_i32x4_shuffle(v, v, 2, 3, 2, 3));
  };
  const auto c0 = low(c.raw), product0 = wasm_f64x2_mul(low(a.raw), low(b.raw));
  auto sum0 = wasm_f64x2_add(product0, c0);
  const auto zeros = wasm_i32x4_const_splat(0xFFFFFFF);
  if constexpr (kN <= 2) {
    sum0 = RoundedToOdd(product0, c0, sum0);
    return Vec128<float, kN>{wasm_f32x4_demote_f64x2_zero(sum0)};
  }
  const auto c1 = high(c.raw), product1 = wasm_f64x2_mul(high(a.raw), high(b.raw));
  auto sum1 = wasm_f64x2_add(product1, c1);
  const auto ends = wasm_i32x4_shuffle(sum0, sum1, 0, 2, 4, 6);
  const auto end_in_zeros = wasm_i32x4_eq(wasm_v128_and(ends, zeros), wasm_i32x4_const_splat(0));
  if (HWY_UNLIKELY(wasm_v128_any_true(end_in_zeros))) {
    sum0 = RoundedToOdd(product0, c0, sum0);
    sum1 = RoundedToOdd(product1, c1, sum1);
  }
  return Vec128<float, kN>{wasm_i32x4_shuffle(wasm_f32x4_demote_f64x2_zero(sum0),
                                              wasm_f32x4_demote_f64x2_zero(sum1), 0, 1, 4, 5)};
}

template <size_t kN>
HWY_INLINE Vec128<float, kN> MulSub(Vec128<float, kN> a, Vec128<float, kN> b, Vec128<float, kN> c) {
  return fused::MulAdd(a, b, Neg(c));
}

template <size_t kN>
HWY_INLINE Vec128<float, kN> NegMulAdd(Vec128<float, kN> a, Vec128<float, kN> b,
                                       Vec128<float, kN> c) {
  return fused::MulAdd(Neg(a), b, c);
}

}  // namespace fused
namespace hn = fused;
#else
namespace hn = hwy::HWY_NAMESPACE;
#endif

}  // namespace kinglet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // KINGLET_KERNELS_CPU_HIGHWAY_INL_H_

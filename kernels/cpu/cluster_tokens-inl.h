// kernels/ref/cluster_tokens.h in vectors.
#if defined(KINGLET_KERNELS_CPU_CLUSTER_TOKENS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KINGLET_KERNELS_CPU_CLUSTER_TOKENS_INL_H_
#undef KINGLET_KERNELS_CPU_CLUSTER_TOKENS_INL_H_
#else
#define KINGLET_KERNELS_CPU_CLUSTER_TOKENS_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "kernels/cluster_tokens.h"
#include "kernels/cpu/exponential-inl.h"
#include "kernels/cpu/highway-inl.h"
#include "kernels/cpu/order-inl.h"
#include "kernels/functions.h"

HWY_BEFORE_NAMESPACE();
namespace kinglet::cpu::HWY_NAMESPACE {

template <class D>
HWY_INLINE hn::Vec<D> TokenVector(D d, const float* logits, const ClusterTerms<float>& terms) {
  const auto shifted = hn::Sub(hn::LoadU(d, logits), hn::Set(d, terms.reference));
  const auto within = hn::Sub(shifted, hn::Set(d, terms.log_sum));
  const auto clamped = hn::IfThenElseZero(hn::Lt(within, hn::Zero(d)), within);
  return hn::Add(hn::Add(hn::Set(d, terms.parent), clamped), hn::Set(d, terms.keep));
}

void TokenLogProbabilities(const float* logits, size_t n, const ClusterTerms<float>& terms,
                           float* out) {
  const ClusterTerms<float> own = terms;  // a copy, which no store to `out` can change
  ForEach(0, n, [&](auto d, size_t i) HWY_ATTR {
    hn::StoreU(TokenVector(d, logits + i, own), d, out + i);
  });
}

size_t TokensAtLeast(const float* logits, size_t n, const ClusterTerms<float>& terms,
                     float threshold, uint32_t* places) {
  const float least = LeastLogit(terms, threshold);
  size_t found = 0;
  ForEach(0, n, [&](auto d, size_t i) HWY_ATTR {
    const hn::RebindToUnsigned<decltype(d)> d32;
    if (hn::AllFalse(d, hn::Ge(hn::LoadU(d, logits + i), hn::Set(d, least)))) return;
    const auto reached = hn::Ge(TokenVector(d, logits + i, terms), hn::Set(d, threshold));
    if (hn::AllFalse(d, reached)) return;
    const auto indices = hn::Iota(d32, static_cast<uint32_t>(i));
    found += hn::CompressStore(indices, hn::RebindMask(d32, reached), d32, places + found);
  });
  return found;
}

// Log of kernels/functions.h, element by element. REQUIRES: x >= 0 or NaN.
template <class D>
HWY_INLINE hn::Vec<D> LogVector(D d, hn::Vec<D> x) {
  using C = LogConstants;
  const hn::RebindToSigned<D> d32;
  const auto denormal = hn::Lt(x, hn::BitCast(d, hn::Set(d32, 0x00800000)));
  const auto bits =
      hn::BitCast(d32, hn::IfThenElse(denormal, hn::Mul(x, hn::Set(d, 8388608.0f)), x));
  auto exponent = hn::Sub(hn::ShiftRight<23>(bits), hn::Set(d32, 127));
  const auto scaled = hn::Sub(exponent, hn::Set(d32, 23));
  exponent = hn::IfThenElse(hn::RebindMask(d32, denormal), scaled, exponent);
  const auto mantissa = hn::And(bits, hn::Set(d32, 0x007fffff));
  auto m = hn::BitCast(d, hn::Or(mantissa, hn::Set(d32, 0x3f800000)));
  const auto large = hn::Gt(m, hn::Set(d, 2.0f * C::kSqrtHalf));
  m = hn::IfThenElse(large, hn::Mul(m, hn::Set(d, 0.5f)), m);
  exponent =
      hn::IfThenElse(hn::RebindMask(d32, large), hn::Add(exponent, hn::Set(d32, 1)), exponent);
  const auto f = hn::Sub(m, hn::Set(d, 1.0f));
  const auto s = hn::Div(f, hn::Add(hn::Set(d, 2.0f), f));
  const auto z = hn::Mul(s, s);
  auto p = hn::Set(d, C::kC9);
  p = hn::MulAdd(p, z, hn::Set(d, C::kC7));
  p = hn::MulAdd(p, z, hn::Set(d, C::kC5));
  p = hn::MulAdd(p, z, hn::Set(d, C::kC3));
  p = hn::Mul(p, z);
  const auto half_square = hn::Mul(hn::Mul(hn::Set(d, 0.5f), f), f);
  const auto e = hn::ConvertTo(d, exponent);
  const auto low = hn::MulAdd(s, hn::Add(half_square, p), hn::Mul(e, hn::Set(d, C::kLn2Low)));
  const auto rest = hn::Sub(f, hn::Sub(half_square, low));
  const auto result = hn::MulAdd(e, hn::Set(d, C::kLn2High), rest);
  const auto infinity = hn::BitCast(d, hn::Set(d32, 0x7f800000));
  // Infinity and NaN stay as they are; 0 gives minus infinity.
  const auto finite = hn::Lt(x, infinity);
  return hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Neg(infinity),
                        hn::IfThenElse(finite, result, x));
}

void MixTokens(const float* weights, size_t n, const CacheTerms<float>& terms,
               float* log_probabilities) {
  const CacheTerms<float> own = terms;
  ForEach(0, n, [&](auto d, size_t i) HWY_ATTR {
    const auto softmax =
        hn::Mul(hn::Set(d, own.keep), ExpVector(d, hn::LoadU(d, log_probabilities + i)));
    const auto share = hn::Div(hn::LoadU(d, weights + i), hn::Set(d, own.total));
    const auto mixed = hn::Add(softmax, hn::Mul(hn::Set(d, own.lambda), share));
    hn::StoreU(LogVector(d, mixed), d, log_probabilities + i);
  });
}

}  // namespace kinglet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // KINGLET_KERNELS_CPU_CLUSTER_TOKENS_INL_H_

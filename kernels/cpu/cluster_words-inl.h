// kernels/ref/cluster_words.h in vectors.
#if defined(KINGLET_KERNELS_CPU_CLUSTER_WORDS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KINGLET_KERNELS_CPU_CLUSTER_WORDS_INL_H_
#undef KINGLET_KERNELS_CPU_CLUSTER_WORDS_INL_H_
#else
#define KINGLET_KERNELS_CPU_CLUSTER_WORDS_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"
#include "kernels/cluster_words.h"
#include "kernels/cpu/order-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kinglet::cpu::HWY_NAMESPACE {

template <class D>
HWY_INLINE hn::Vec<D> WordVector(D d, const float* logits, const ClusterTerms<float>& terms) {
  const auto shifted = hn::Sub(hn::LoadU(d, logits), hn::Set(d, terms.largest));
  const auto within = hn::Sub(shifted, hn::Set(d, terms.log_sum));
  const auto zero = hn::Zero(d);
  const auto clamped = hn::IfThenElse(hn::Lt(within, zero), within, zero);
  return hn::Add(hn::Add(hn::Set(d, terms.parent), clamped), hn::Set(d, terms.keep));
}

void WordLogProbabilities(const float* logits, size_t n, const ClusterTerms<float>& terms,
                          float* out) {
  ForEach(0, n, [&](auto d, size_t i) HWY_ATTR {
    hn::StoreU(WordVector(d, logits + i, terms), d, out + i);
  });
}

size_t WordsAtLeast(const float* logits, size_t n, const ClusterTerms<float>& terms,
                    float threshold, uint32_t* places) {
  size_t found = 0;
  ForEach(0, n, [&](auto d, size_t i) HWY_ATTR {
    const hn::RebindToUnsigned<decltype(d)> d32;
    const auto reached = hn::Ge(WordVector(d, logits + i, terms), hn::Set(d, threshold));
    if (hn::AllFalse(d, reached)) return;
    const auto indices = hn::Iota(d32, static_cast<uint32_t>(i));
    found += hn::CompressStore(indices, hn::RebindMask(d32, reached), d32, places + found);
  });
  return found;
}

}  // namespace kinglet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // KINGLET_KERNELS_CPU_CLUSTER_WORDS_INL_H_

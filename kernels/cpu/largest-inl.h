// The largest element of a vector.
#if defined(KINGLET_KERNELS_CPU_LARGEST_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KINGLET_KERNELS_CPU_LARGEST_INL_H_
#undef KINGLET_KERNELS_CPU_LARGEST_INL_H_
#else
#define KINGLET_KERNELS_CPU_LARGEST_INL_H_
#endif

#include <cstddef>
#include <limits>

#include "kernels/cpu/highway-inl.h"
#include "kernels/cpu/order-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kinglet::cpu::HWY_NAMESPACE {

// v where it is larger than best, which stays where either is NaN.
template <class V>
HWY_INLINE V Larger(V v, V best) {
#if HWY_ARCH_X86
  return hn::Max(v, best);  // the second operand if neither is larger or one is NaN
#else
  return hn::IfThenElse(hn::Gt(v, best), v, best);
#endif
}

HWY_INLINE hn::Vec<Floats> LeastFloats() {
  return hn::Set(Floats(), -std::numeric_limits<float>::infinity());
}

// The largest element of x[0, n), of which `best` has seen [0, seen) with Larger from LeastFloats
// on. NaN never wins a comparison, so it is returned only if x[0] is NaN. Of zeros of both signs
// the first is returned. REQUIRES: n > 0.
HWY_INLINE float FinishLargest(const float* x, size_t seen, size_t n, hn::Vec<Floats> best) {
  if (x[0] != x[0]) return x[0];
  float largest = hn::GetLane(hn::MaxOfLanes(Floats(), best));
  for (size_t i = seen; i < n; ++i) largest = x[i] > largest ? x[i] : largest;
  if (largest != 0.0f) return largest;
  size_t first = 0;
  while (x[first] != 0.0f) ++first;
  return x[first];
}

HWY_INLINE float LargestElement(const float* x, size_t n) {
  constexpr size_t kUnroll = 4;
  const Floats d;
  hn::Vec<Floats> best[kUnroll];
  for (auto& b : best) b = LeastFloats();
  size_t i = 0;
  for (; i + kUnroll * kWidth <= n; i += kUnroll * kWidth) {
    for (size_t u = 0; u < kUnroll; ++u)
      best[u] = Larger(hn::LoadU(d, x + i + u * kWidth), best[u]);
  }
  for (; i + kWidth <= n; i += kWidth) best[0] = Larger(hn::LoadU(d, x + i), best[0]);
  const auto most = hn::Max(hn::Max(best[0], best[1]), hn::Max(best[2], best[3]));
  return FinishLargest(x, i, n, most);
}

}  // namespace kinglet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // KINGLET_KERNELS_CPU_LARGEST_INL_H_

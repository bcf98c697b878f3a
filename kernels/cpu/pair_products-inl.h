// Sums of pairs of 16-bit products.
#if defined(KINGLET_KERNELS_CPU_PAIR_PRODUCTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KINGLET_KERNELS_CPU_PAIR_PRODUCTS_INL_H_
#undef KINGLET_KERNELS_CPU_PAIR_PRODUCTS_INL_H_
#else
#define KINGLET_KERNELS_CPU_PAIR_PRODUCTS_INL_H_
#endif

#include <cstdint>
#include <cstring>

#include "kernels/cpu/highway-inl.h"
#include "kernels/cpu/order-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kinglet::cpu::HWY_NAMESPACE {

// Add gives sums[i] + a[2i] * b[2i] + a[2i+1] * b[2i+1]: pairs of 16-bit products.
struct PairProducts {
  template <class D32, class V32, class V16>
  static HWY_INLINE V32 Add(D32 d32, V32 sums, V16 a, V16 b) {
#if HWY_ARCH_X86 || HWY_ARCH_WASM
    // One multiply-add instruction, which here pairs neighbours; other machines may reorder.
    V32 unused = hn::Zero(d32);
    return hn::ReorderWidenMulAccumulate(d32, a, b, sums, unused);
#else
    const V32 a32 = hn::BitCast(d32, a), b32 = hn::BitCast(d32, b);
    const V32 odd = hn::Mul(hn::ShiftRight<16>(a32), hn::ShiftRight<16>(b32));
    const V32 even = hn::Mul(hn::ShiftRight<16>(hn::ShiftLeft<16>(a32)),
                             hn::ShiftRight<16>(hn::ShiftLeft<16>(b32)));
    return hn::Add(sums, hn::Add(even, odd));
#endif
  }
};

#if HWY_TARGET == HWY_AVX3
// Like PairProducts, but in one instruction, for which Highway 1.0.3 has neither a function nor a
// target that enables the intrinsic.
struct VnniPairProducts {
  template <class D32, class V32, class V16>
  static HWY_INLINE V32 Add(D32, V32 sums, V16 a, V16 b) {
    asm("vpdpwssd %2, %1, %0" : "+v"(sums.raw) : "v"(a.raw), "v"(b.raw));
    return sums;
  }
};
#endif

HWY_INLINE int32_t LoadPair(const int16_t* x) {
  int32_t pair;
  std::memcpy(&pair, x, sizeof pair);
  return pair;
}

}  // namespace kinglet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // KINGLET_KERNELS_CPU_PAIR_PRODUCTS_INL_H_

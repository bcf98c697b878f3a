// Reads memory as fast as possible: bench compares times with this lower bound.
#if defined(KINGLET_KERNELS_CPU_READ_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KINGLET_KERNELS_CPU_READ_INL_H_
#undef KINGLET_KERNELS_CPU_READ_INL_H_
#else
#define KINGLET_KERNELS_CPU_READ_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/highway-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kinglet::cpu::HWY_NAMESPACE {
uint64_t ReadLines(const std::byte* lines, size_t count) {
  const hn::CappedTag<uint64_t, 8> d;
  constexpr size_t kVectorElements = hn::MaxLanes(d), kLineElements = 8, kTogether = 4;
  const auto* values = reinterpret_cast<const uint64_t*>(lines);
  // One sum for each vector of four lines, so that loads do not wait for sums.
  hn::Vec<decltype(d)> sums[kTogether * kLineElements / kVectorElements];
  for (auto& sum : sums) sum = hn::Zero(d);
  size_t line = 0;
  for (; line + kTogether <= count; line += kTogether) {
    size_t at = line * kLineElements;
    for (auto& sum : sums) {
      sum = hn::Xor(sum, hn::Load(d, values + at));
      at += kVectorElements;
    }
  }
  auto total = hn::Zero(d);
  for (size_t at = line * kLineElements; at < count * kLineElements; at += kVectorElements) {
    total = hn::Xor(total, hn::Load(d, values + at));
  }
  for (const auto& sum : sums) total = hn::Xor(total, sum);
  alignas(64) uint64_t elements[kVectorElements];
  hn::Store(total, d, elements);
  uint64_t folded = 0;
  for (const uint64_t element : elements) folded ^= element;
  return folded;
}

}  // namespace kinglet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // KINGLET_KERNELS_CPU_READ_INL_H_

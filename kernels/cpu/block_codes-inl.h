// Reads integer weights from panels.
#if defined(KINGLET_KERNELS_CPU_BLOCK_CODES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KINGLET_KERNELS_CPU_BLOCK_CODES_INL_H_
#undef KINGLET_KERNELS_CPU_BLOCK_CODES_INL_H_
#else
#define KINGLET_KERNELS_CPU_BLOCK_CODES_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"
#include "kernels/cpu/order-inl.h"
#include "kernels/cpu/vector.h"

HWY_BEFORE_NAMESPACE();
namespace kinglet::cpu::HWY_NAMESPACE {

using Sums = hn::CappedTag<int32_t, kPanelRows>;
using Codes = hn::Repartition<int16_t, Sums>;

// The signs of the block `blocks` further. Other forms than kPlanes have none: their pointer is
// null, from which even an unused offset is undefined.
template <CodeForm kForm>
HWY_INLINE const uint64_t* SignsAfter(const uint64_t* signs, size_t blocks) {
  if constexpr (kForm == CodeForm::kPlanes) return signs + blocks;
  return signs;
}

// The codes of kWidth rows, from `row` of their panel on, in one block: a vector of pairs for each
// pair of columns. The order of entries suits interleaving instructions, which work within 128
// bits.
template <CodeForm kForm>
struct BlockCodes;

template <>
struct BlockCodes<CodeForm::kBytes> {
  static constexpr size_t kPairs = 2;
  hn::Vec<Codes> pairs[kPairs];
  HWY_INLINE BlockCodes(const std::byte* block, const uint64_t*, size_t row) {
    const hn::Repartition<int8_t, Sums> d8;
    const Codes d16;
    const auto bytes = hn::Load(d8, reinterpret_cast<const int8_t*>(block) + row * 4);
    pairs[0] = hn::ShiftRight<8>(hn::BitCast(d16, hn::InterleaveLower(d8, bytes, bytes)));
    pairs[1] = hn::ShiftRight<8>(hn::BitCast(d16, hn::InterleaveUpper(d8, bytes, bytes)));
  }
};

template <>
struct BlockCodes<CodeForm::kPlanes> {
  static constexpr size_t kPairs = 2;
  hn::Vec<Codes> pairs[kPairs];
  HWY_INLINE BlockCodes(const std::byte* block, const uint64_t* signs, size_t row) {
    const hn::Repartition<uint8_t, Sums> d8;
    const Codes d16;
    const auto low = hn::Load(d8, reinterpret_cast<const uint8_t*>(block) + row * 4);
    const auto* sign_bytes = reinterpret_cast<const uint8_t*>(signs) + row / 2;
    const auto high = hn::VecFromMask(d8, hn::LoadMaskBits(d8, sign_bytes));
    pairs[0] = hn::BitCast(d16, hn::InterleaveLower(d8, low, high));
    pairs[1] = hn::BitCast(d16, hn::InterleaveUpper(d8, low, high));
  }
};

template <>
struct BlockCodes<CodeForm::kWords> {
  static constexpr size_t kPairs = 1;
  hn::Vec<Codes> pairs[kPairs];
  HWY_INLINE BlockCodes(const std::byte* block, const uint64_t*, size_t row) {
    pairs[0] = hn::Load(Codes(), reinterpret_cast<const int16_t*>(block) + row * 2);
  }
};

}  // namespace kinglet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // KINGLET_KERNELS_CPU_BLOCK_CODES_INL_H_

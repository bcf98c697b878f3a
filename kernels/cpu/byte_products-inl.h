// Integer products of weights in bytes with several vectors whose codes fit in bytes: four products
// an instruction and element, twice as many as of 16-bit codes.
#if defined(KINGLET_KERNELS_CPU_BYTE_PRODUCTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KINGLET_KERNELS_CPU_BYTE_PRODUCTS_INL_H_
#undef KINGLET_KERNELS_CPU_BYTE_PRODUCTS_INL_H_
#else
#define KINGLET_KERNELS_CPU_BYTE_PRODUCTS_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hwy/cache_control.h"
#include "kernels/cpu/finish-inl.h"
#include "kernels/cpu/highway-inl.h"
#include "kernels/cpu/order-inl.h"
#include "kernels/cpu/pair_products-inl.h"
#include "kernels/cpu/tile_codes-inl.h"
#include "kernels/cpu/vector.h"

namespace kinglet::cpu::HWY_NAMESPACE {

// How many panels are multiplied with all groups of vectors while these panels are in the
// second-level cache.
constexpr size_t kTurnPanels = 32;

}  // namespace kinglet::cpu::HWY_NAMESPACE

#if HWY_TARGET == HWY_AVX3
HWY_BEFORE_NAMESPACE();
namespace kinglet::cpu::HWY_NAMESPACE {

// Vectors as bytes, padded with zeros to full tiles: x[tile][vector][column of the tile]. Weights
// are multiplied as weight + 128, which is not negative; `start` subtracts what that adds to a sum,
// modulo 2^32.
constexpr size_t kByteInputs = 8;
struct ByteInputs {
  const int8_t* x;
  int32_t start[kByteInputs];
  const CodeVector* vectors;
};

// Writes codes as bytes, a tile each kTileStride bytes, and their sum. Returns whether all of them
// fit.
constexpr size_t kTileStride = kByteInputs * kNarrowCols;
HWY_INLINE bool CodesAsBytes(const int16_t* codes, size_t count, int8_t* bytes, int32_t& total) {
  const hn::FixedTag<int16_t, 32> d16;
  const hn::Rebind<int8_t, decltype(d16)> d8;
  const hn::Repartition<int32_t, decltype(d16)> d32;
  auto sums = hn::Zero(d32);
  auto lost = hn::Zero(d16);
  const auto narrow = [&](const int16_t* from, int8_t* to) HWY_ATTR {
    const auto wide = hn::LoadU(d16, from);
    const auto low = hn::DemoteTo(d8, wide);
    alignas(32) int8_t together[32];
    hn::Store(low, d8, together);
    for (size_t tile = 0; tile < 8; ++tile) {
      std::memcpy(to + tile * kTileStride, together + tile * kNarrowCols, kNarrowCols);
    }
    lost = hn::Or(lost, hn::Xor(wide, hn::PromoteTo(d16, low)));
    sums = PairProducts::Add(d32, sums, wide, hn::Set(d16, 1));
  };
  size_t i = 0;
  for (; i + 32 <= count; i += 32) narrow(codes + i, bytes + i * kByteInputs);
  if (i < count) {
    int16_t last[32] = {};
    std::memcpy(last, codes + i, (count - i) * sizeof(int16_t));
    narrow(last, bytes + i * kByteInputs);
  }
  total = hn::GetLane(hn::SumOfLanes(d32, sums));
  return hn::AllTrue(d16, hn::Eq(lost, hn::Zero(d16)));
}

// sums[i] + the products of bytes 4 i to 4 i + 3 of a, which has no signs, and of b.
template <class V32, class V8>
HWY_INLINE V32 AddByteProducts(V32 sums, V8 a, V32 b) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sums.raw) : "v"(a.raw), "v"(b.raw));
  return sums;
}

template <size_t kPanels, size_t kInputs>
HWY_INLINE void MultiplyBytes(const CodePanels& weight, size_t panel, const ByteInputs& inputs,
                              size_t first_input, const Finish& finish) {
  static_assert(kGroups == 1);
  constexpr size_t kAhead = 16, kFarAhead = 64;  // tiles
  const Sums d32;
  const Floats d;
  const hn::Repartition<uint8_t, Sums> d8;
  // Brings a row's four columns together.
  alignas(64) static constexpr uint8_t kOrder[16] = {0, 1, 8,  9,  2, 3, 10, 11,
                                                     4, 5, 12, 13, 6, 7, 14, 15};
  const auto order = hn::LoadDup128(d8, kOrder);
  const auto offset = hn::Set(d8, 128);
  const size_t stride = TilesOf(CodeForm::kBytes, weight.cols);
  const auto* codes = reinterpret_cast<const uint8_t*>(weight.codes) + panel * stride * kTileBytes;
  hn::Vec<Sums> sums[kInputs * kPanels];
  for (size_t s = 0; s < kInputs * kPanels; ++s)
    sums[s] = hn::Set(d32, inputs.start[first_input + s / kPanels]);
  const int8_t* x = inputs.x + first_input * kNarrowCols;
  for (size_t tile = 0; tile < stride; ++tile, codes += kTileBytes, x += kTileStride) {
    hn::Vec<decltype(d8)> rows[kPanels];
    for (size_t p = 0; p < kPanels; ++p) {
      const uint8_t* const at = codes + p * stride * kTileBytes;
      hwy::Prefetch(at + kAhead * kTileBytes);
      FetchToSecondLevel(at + kFarAhead * kTileBytes, kLineBytes);
      rows[p] = hn::Xor(hn::TableLookupBytes(hn::Load(d8, at), order), offset);
    }
    for (size_t i = 0; i < kInputs; ++i) {
      int32_t four;
      std::memcpy(&four, x + i * kNarrowCols, sizeof four);
      const auto both = hn::Set(d32, four);
      for (size_t p = 0; p < kPanels; ++p) {
        auto& sum = sums[i * kPanels + p];
        sum = AddByteProducts(sum, rows[p], both);
      }
    }
  }
  const size_t first = panel * kPanelRows;
  for (size_t i = 0; i < kInputs; ++i) {
    const CodeVector& vector = inputs.vectors[first_input + i];
    const auto input_scale = hn::Set(d, vector.scale);
    hn::Vec<Floats> scaled[kPanels];
    for (size_t p = 0; p < kPanels; ++p) {
      const auto scale = hn::Mul(hn::Load(d, weight.scales + first + p * kPanelRows), input_scale);
      scaled[p] = hn::Mul(hn::ConvertTo(d, sums[i * kPanels + p]), scale);
    }
    FinishAll(finish, scaled, first, weight.rows, vector.y);
  }
}

template <size_t kPanels>
HWY_INLINE void MultiplyBytesWith(const CodePanels& weight, size_t panel, const ByteInputs& inputs,
                                  size_t count, const Finish& finish) {
  if (count == kByteInputs) return MultiplyBytes<kPanels, 8>(weight, panel, inputs, 0, finish);
  size_t i = 0;
  for (; i + 4 <= count; i += 4) MultiplyBytes<kPanels, 4>(weight, panel, inputs, i, finish);
  for (; i + 2 <= count; i += 2) MultiplyBytes<kPanels, 2>(weight, panel, inputs, i, finish);
  if (i < count) MultiplyBytes<kPanels, 1>(weight, panel, inputs, i, finish);
}

// The columns that fit on the stack.
constexpr size_t kMostByteCols = 4096;

// Multiplies panels [panel, end) with up to kByteInputs vectors unless a code does not fit. Returns
// whether it has.
HWY_NOINLINE bool MultiplyGroupOfBytes(const CodePanels& weight, size_t panel, size_t end,
                                       const CodeVector* vectors, size_t count,
                                       const Finish& finish) {
  alignas(64) int8_t bytes[kByteInputs * kMostByteCols];
  ByteInputs inputs;
  inputs.x = bytes;
  inputs.vectors = vectors;
  for (size_t i = 0; i < count; ++i) {
    int32_t total;
    if (!CodesAsBytes(vectors[i].x, weight.cols, bytes + i * kNarrowCols, total)) return false;
    inputs.start[i] = static_cast<int32_t>(0 - static_cast<uint32_t>(total) * 128);
  }
  for (; panel + 2 <= end; panel += 2) {
    MultiplyBytesWith<2>(weight, panel, inputs, count, finish);
  }
  if (panel < end) MultiplyBytesWith<1>(weight, panel, inputs, count, finish);
  return true;
}

// Multiplies panels [panel, end) with several vectors, unless there are too many columns or a code
// does not fit. Returns whether it has. The sums of 8-bit weights and codes of up to 127 fit in 32
// bits, and ChunkPairs then is kLeastChunkPairs or more.
HWY_INLINE bool ByteProduct(const CodePanels& weight, size_t panel, size_t end,
                            const CodeVector* vectors, size_t count, size_t chunk_pairs,
                            const Finish& finish) {
  constexpr size_t kLeastChunkPairs = INT32_MAX / (2 * 128 * 127);
  static_assert(kMostByteCols / 2 <= kLeastChunkPairs);
  if (chunk_pairs < kLeastChunkPairs || weight.cols > kMostByteCols) return false;
  for (size_t next; panel < end; panel = next) {
    next = end - panel < kTurnPanels ? end : panel + kTurnPanels;
    for (size_t first = 0; first < count; first += kByteInputs) {
      const size_t size = count - first < kByteInputs ? count - first : kByteInputs;
      if (!MultiplyGroupOfBytes(weight, panel, next, vectors + first, size, finish)) return false;
    }
  }
  return true;
}

}  // namespace kinglet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#endif  // KINGLET_KERNELS_CPU_BYTE_PRODUCTS_INL_H_

#include "converters/passes/prune.h"

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "format/overloaded.h"

namespace kinglet {
namespace {

// The bits of |value|, whose order as integers is the order of the magnitudes.
uint32_t MagnitudeBits(float value) { return std::bit_cast<uint32_t>(value) & 0x7FFFFFFF; }

// Which entries become zero: those whose bits are below `limit`, and the first `equal` of those
// whose bits are `limit`.
struct Threshold {
  uint32_t limit;
  uint64_t equal;
};

// Finds the bits of rank `count`: first the upper 16, then the lower 16, by counting how often each
// value of 16 bits occurs. REQUIRES: count < entries.
template <class BitsOf>
Threshold FindThreshold(uint64_t entries, uint64_t count, const BitsOf& bits_of) {
  constexpr int kHalf = 16;
  uint32_t limit = 0, known = 0;  // `known`: mask of the bits of `limit` that are found
  uint64_t rank = count;          // among the entries that have these bits
  for (int shift = kHalf; shift >= 0; shift -= kHalf) {
    std::vector<uint64_t> counts(size_t{1} << kHalf);
    for (uint64_t i = 0; i < entries; ++i) {
      const uint32_t bits = bits_of(i);
      if ((bits & known) == limit) ++counts[(bits >> shift) & 0xFFFF];
    }
    uint32_t half = 0;
    while (rank >= counts[half]) rank -= counts[half++];
    limit |= half << shift;
    known |= uint32_t{0xFFFF} << shift;
  }
  return {limit, rank};
}

// `bits_of(i)` are the magnitude bits of entry i; `clear(i)` makes the entry zero.
template <class BitsOf, class Clear>
void Prune(double fraction, uint64_t entries, const BitsOf& bits_of, const Clear& clear) {
  const auto count = static_cast<uint64_t>(std::floor(fraction * static_cast<double>(entries)));
  if (count == 0) return;
  Threshold threshold = FindThreshold(entries, count, bits_of);
  for (uint64_t i = 0; i < entries; ++i) {
    const uint32_t bits = bits_of(i);
    const bool tied = bits == threshold.limit && threshold.equal > 0;
    if (tied) --threshold.equal;
    if (tied || bits < threshold.limit) clear(i);
  }
}

}  // namespace

void PruneTensor(double fraction, EncodedTensor& tensor) {
  const auto prune = [fraction](auto& values, const auto& value_of) {
    Prune(
        fraction, values.size(), [&](uint64_t i) { return MagnitudeBits(value_of(i)); },
        [&](uint64_t i) { values[i] = 0; });
  };
  std::visit(Overloaded{[&](DenseF32& dense) {
                          prune(dense.values, [&](uint64_t i) { return dense.values[i]; });
                        },
                        [&](DenseF16& half) {
                          prune(half.bits, [&](uint64_t i) { return HalfToFloat(half.bits[i]); });
                        },
                        [&](Quantised& quantised) {
                          const bool divides = quantised.rule == ScaleRule::kDividePerTensor;
                          const uint64_t row =
                              quantised.scales.size() == 1 ? UINT64_MAX : Cols(tensor.shape);
                          prune(quantised.codes, [&](uint64_t i) {
                            const auto code = static_cast<float>(quantised.codes[i]);
                            const float scale = quantised.scales[i / row];
                            return divides ? code / scale : code * scale;
                          });
                        },
                        [](Coded& /*has no entries of its own*/) {}},
             tensor.values);
}

}  // namespace kinglet

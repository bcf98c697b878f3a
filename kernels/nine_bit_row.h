// Rows of codes that take 9 bits each, as a stream keeps them for many tokens. C++17, for the
// device too.
#ifndef KINGLET_KERNELS_NINE_BIT_ROW_H_
#define KINGLET_KERNELS_NINE_BIT_ROW_H_

#include <cstdint>

#include "kernels/host_device.h"

namespace kinglet {

// A row of `count` codes from -256 to 255, padded with zeros to a multiple of kPadding. First comes
// the low byte of each code, then the sign bits, eight codes a byte, the first in the lowest bit:
//   code i = low[i] - 256 * sign[i]
// So a row's low bytes and sign bits are both read in full 64-bit values, and a part of the row
// that begins and ends at a multiple of 8 codes has no byte in common with the rest.
struct NineBitRow {
  static constexpr uint64_t kPadding = 64;
  static constexpr int64_t kLargest = 255;  // in magnitude, which quantisers limit
  // Products keep a complete vector on the stack, so longer rows are not made (runtime/lower).
  static constexpr uint64_t kMostCodes = 8192;
  uint64_t count;

  KINGLET_HOST_DEVICE constexpr uint64_t Padded() const {
    return (count + kPadding - 1) / kPadding * kPadding;
  }
  KINGLET_HOST_DEVICE constexpr uint64_t Bytes() const { return Padded() + Padded() / 8; }

  // The byte that contains the sign of code i, in bit i % 8.
  KINGLET_HOST_DEVICE constexpr uint64_t SignByte(uint64_t i) const { return Padded() + i / 8; }

  // Code i < Padded() of a row.
  KINGLET_HOST_DEVICE constexpr int32_t Code(const uint8_t* row, uint64_t i) const {
    const int32_t sign = row[SignByte(i)] >> (i % 8) & 1;
    return row[i] - 256 * sign;
  }
  // Byte `at` < Bytes() of the row whose code i < count is code(i).
  template <class CodeAt>
  KINGLET_HOST_DEVICE constexpr uint8_t Byte(uint64_t at, const CodeAt& code) const {
    if (at < Padded()) return at < count ? static_cast<uint8_t>(code(at) & 0xFF) : uint8_t{0};
    const uint64_t first = (at - Padded()) * 8;
    uint32_t signs = 0;
    for (uint64_t i = first; i < first + 8 && i < count; ++i) {
      signs |= static_cast<uint32_t>(code(i) < 0) << (i - first);
    }
    return static_cast<uint8_t>(signs);
  }
  // Changes code i < count.
  constexpr void Set(uint8_t* row, uint64_t i, int32_t code) const {
    const auto sign = static_cast<uint8_t>(1 << (i % 8));
    uint8_t& signs = row[SignByte(i)];
    row[i] = static_cast<uint8_t>(code & 0xFF);
    signs = static_cast<uint8_t>(code < 0 ? signs | sign : signs & ~sign);
  }
  // The size of a part of n codes, and the index in the row of byte k of the part that begins at
  // code `first`. REQUIRES: n and first are multiples of 8.
  KINGLET_HOST_DEVICE static constexpr uint64_t PartBytes(uint64_t n) { return n + n / 8; }
  KINGLET_HOST_DEVICE constexpr uint64_t PartByteAt(uint64_t first, uint64_t n, uint64_t k) const {
    return k < n ? first + k : SignByte(first) + (k - n);
  }
  // Writes all bytes of a row.
  template <class CodeAt>
  constexpr void Store(const CodeAt& code, uint8_t* row) const {
    for (uint64_t at = 0; at < Bytes(); ++at) row[at] = Byte(at, code);
  }
};

}  // namespace kinglet

#endif  // KINGLET_KERNELS_NINE_BIT_ROW_H_

// Bit packing: fields of 1 to 32 bits, one after the other without gaps, least significant bit
// first.
//
// Field i occupies stream bits [i * bits, (i + 1) * bits); stream bit j is bit j % 8 of byte j / 8.
// Three fields a, b, c of 5 bits (a0 is the least significant bit of a, "-" is an unused bit):
//
//   byte              0                                1
//   bit       7  6  5  4  3  2  1  0           7  6  5  4  3  2  1  0
//   contains b2 b1 b0 a4 a3 a2 a1 a0           - c4 c3 c2 c1 c0 b4 b3
//
// The unused bits of the last byte are zero. Signed fields are two's complement. A mask is a stream
// of 1-bit fields.
#ifndef KINGLET_FORMAT_BITPACK_H_
#define KINGLET_FORMAT_BITPACK_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "format/little_endian.h"

namespace kinglet {

// Bytes that `count` fields take: ceil(count * bits / 8). REQUIRES: 0 <= bits <= 32, count < 2^58.
constexpr uint64_t PackedBytes(uint64_t count, int bits) {
  return (count * static_cast<uint64_t>(bits) + 7) / 8;
}

// Packs fields of one width.
class BitPacker {
 public:
  // REQUIRES: 0 <= bits <= 32. `count` fields are expected; memory is reserved for them.
  BitPacker(int bits, uint64_t count);
  // Adds the low `bits` bits of `field`.
  void Append(uint32_t field);
  // The packed bytes; the packer is empty afterwards.
  std::vector<std::byte> Finish();

 private:
  int bits_;
  int held_ = 0;  // bits waiting in accumulator_, below 8
  uint64_t accumulator_ = 0;
  std::vector<std::byte> bytes_;
};

// Unpack out.size() fields, the signed form from field `first` on.
// REQUIRES: bytes.size() >= PackedBytes(first + out.size(), bits); unsigned: 0 <= bits <= 32,
// signed: 2 <= bits <= 16.
void UnpackUnsigned(std::span<const std::byte> bytes, int bits, std::span<uint32_t> out);
void UnpackSigned(std::span<const std::byte> bytes, int bits, std::span<int16_t> out,
                  uint64_t first = 0);

// The index of the first of `count` fields that is zero, or `count`. REQUIRES: 1 <= bits <= 32.
uint64_t FindZeroField(std::span<const std::byte> bytes, int bits, uint64_t count);

// Set bits among stream bits [begin, end). REQUIRES: end <= 8 * bytes.size().
uint64_t CountSetBits(std::span<const std::byte> bytes, uint64_t begin, uint64_t end);

// 64 stream bits from byte `at` on; bytes beyond the end read as zero.
inline uint64_t LoadWord(std::span<const std::byte> bytes, uint64_t at) {
  if (at + 8 <= bytes.size()) return LoadLittle<uint64_t>(bytes.data() + at);
  std::byte padded[8] = {};
  if (at < bytes.size()) std::memcpy(padded, bytes.data() + at, bytes.size() - at);
  return LoadLittle<uint64_t>(padded);
}

// Field `index` alone. REQUIRES: `bytes` contain the field; 1 <= bits <= 32.
inline uint32_t LoadField(std::span<const std::byte> bytes, int bits, uint64_t index) {
  const uint64_t bit = index * static_cast<uint64_t>(bits);
  const uint64_t value = LoadWord(bytes, bit / 8) >> (bit % 8);
  return static_cast<uint32_t>(value & ((uint64_t{1} << bits) - 1));
}

// The bytes that contain fields [begin, end).
inline std::span<const std::byte> BytesOfFields(std::span<const std::byte> bytes, int bits,
                                                uint64_t begin, uint64_t end) {
  const uint64_t first = begin * static_cast<uint64_t>(bits) / 8;
  return bytes.subspan(first, PackedBytes(end, bits) - first);
}

// Calls visit(i) for every set stream bit i below `count`, in order.
// REQUIRES: count <= 8 * bytes.size().
template <class Visit>
void ForEachSetBit(std::span<const std::byte> bytes, uint64_t count, Visit&& visit) {
  for (uint64_t base = 0; base < count; base += 64) {
    uint64_t value = LoadWord(bytes, base / 8);
    if (count - base < 64) value &= (uint64_t{1} << (count - base)) - 1;
    for (; value != 0; value &= value - 1)
      visit(base + static_cast<uint64_t>(std::countr_zero(value)));
  }
}

}  // namespace kinglet

#endif  // KINGLET_FORMAT_BITPACK_H_

// Fields are read in 64-bit values at any byte offset.
#include "format/bitpack.h"

#include <algorithm>
#include <utility>

namespace kinglet {
namespace {

// Calls take(i, value) for fields i in [first, end) with field i in the low bits of `value`. The
// bits above the field are arbitrary.
template <class Take>
void ForEachField(std::span<const std::byte> bytes, int bits, uint64_t first, uint64_t end,
                  Take&& take) {
  const auto width = static_cast<uint64_t>(bits);
  // A field starts at most 7 bits into its first byte and has at most 32 bits, so it is within
  // eight bytes.
  const uint64_t complete = bytes.size() < 8 ? 0 : std::min(end, (bytes.size() - 8) * 8 / width);
  uint64_t i = first;
  for (; i < complete; ++i) {
    const uint64_t bit = i * width;
    take(i, LoadLittle<uint64_t>(bytes.data() + bit / 8) >> (bit % 8));
  }
  for (; i < end; ++i) {
    const uint64_t bit = i * width;
    take(i, LoadWord(bytes, bit / 8) >> (bit % 8));
  }
}

// Unpacks signed fields [first, first + 8 n). `first` is a multiple of 8, so the bit offsets of the
// eight fields of a group are compile-time constants.
template <int kBits>
void UnpackGroups(const std::byte* bytes, uint64_t first, uint64_t n, int16_t* out) {
  const std::byte* group = bytes + first / 8 * kBits;
  for (uint64_t i = 0; i < n; ++i, group += kBits, out += 8) {
    for (int j = 0; j < 8; ++j) {
      const auto value = LoadLittle<uint32_t>(group + j * kBits / 8) >> (j * kBits % 8);
      const auto top = static_cast<int32_t>(value << (32 - kBits));
      out[j] = static_cast<int16_t>(top >> (32 - kBits));
    }
  }
}
using UnpackGroupsOf = void (*)(const std::byte*, uint64_t, uint64_t, int16_t*);
constexpr UnpackGroupsOf kUnpackGroups[] = {
    nullptr,          nullptr,          UnpackGroups<2>,  UnpackGroups<3>,  UnpackGroups<4>,
    UnpackGroups<5>,  UnpackGroups<6>,  UnpackGroups<7>,  UnpackGroups<8>,  UnpackGroups<9>,
    UnpackGroups<10>, UnpackGroups<11>, UnpackGroups<12>, UnpackGroups<13>, UnpackGroups<14>,
    UnpackGroups<15>, UnpackGroups<16>};

// Whether one of the fields [0, count) is zero. Tests several fields of a 64-bit value at once:
// subtracting 1 from each field sets the top bit of a zero field, and can disturb only fields above
// a zero field.
bool HasZeroField(std::span<const std::byte> bytes, int bits, uint64_t count) {
  const auto width = static_cast<uint64_t>(bits);
  const uint64_t at_once = 57 / width;  // complete fields in 64 bits after up to 7 skipped bits
  uint64_t ones = 0;
  for (uint64_t i = 0; i < at_once; ++i) ones |= uint64_t{1} << (i * width);
  const uint64_t tops = ones << (width - 1);
  // Only complete 64-bit values are read here; ForEachField below reads the last few fields.
  const uint64_t readable = bytes.size() < 8 ? 0 : (bytes.size() - 8) * 8 / width;
  const uint64_t complete = std::min(count, readable) / at_once * at_once;
  uint64_t i = 0, found = 0;
  for (; i < complete; i += at_once) {
    const uint64_t value = LoadLittle<uint64_t>(bytes.data() + i * width / 8) >> (i * width % 8);
    found |= (value - ones) & ~value & tops;
  }
  const uint64_t mask = (uint64_t{1} << width) - 1;
  ForEachField(bytes, bits, i, count,
               [&](uint64_t, uint64_t value) { found |= (value & mask) == 0 ? 1 : 0; });
  return found != 0;
}

// Counts set bits. std::popcount would call a function per value where the baseline lacks popcnt.
uint64_t SetBits(uint64_t value) {
  value -= value >> 1 & 0x5555555555555555;
  value = (value & 0x3333333333333333) + (value >> 2 & 0x3333333333333333);
  value = (value + (value >> 4)) & 0x0F0F0F0F0F0F0F0F;
  return value * 0x0101010101010101 >> 56;
}

}  // namespace

BitPacker::BitPacker(int bits, uint64_t count) : bits_(bits) {
  bytes_.reserve(PackedBytes(count, bits));
}

void BitPacker::Append(uint32_t field) {
  const uint64_t low = uint64_t{field} & ((uint64_t{1} << bits_) - 1);
  accumulator_ |= low << held_;
  held_ += bits_;
  for (; held_ >= 8; held_ -= 8) {
    bytes_.push_back(static_cast<std::byte>(accumulator_ & 0xFF));
    accumulator_ >>= 8;
  }
}

std::vector<std::byte> BitPacker::Finish() {
  if (held_ > 0) bytes_.push_back(static_cast<std::byte>(accumulator_ & 0xFF));
  held_ = 0;
  accumulator_ = 0;
  return std::exchange(bytes_, {});
}

void UnpackUnsigned(std::span<const std::byte> bytes, int bits, std::span<uint32_t> out) {
  if (bits == 0) {
    std::fill(out.begin(), out.end(), 0u);
    return;
  }
  const uint64_t mask = (uint64_t{1} << bits) - 1;
  ForEachField(bytes, bits, 0, out.size(),
               [&](uint64_t i, uint64_t value) { out[i] = static_cast<uint32_t>(value & mask); });
}

void UnpackSigned(std::span<const std::byte> bytes, int bits, std::span<int16_t> out,
                  uint64_t first) {
  const uint64_t end = first + out.size();
  // Fields are read as 32-bit values, so a group may read up to three bytes after its last field.
  const auto width = static_cast<uint64_t>(bits);
  const uint64_t readable = bytes.size() < 4 ? 0 : (bytes.size() - 4) / width * 8;
  const uint64_t begin = std::min((first + 7) / 8 * 8, end);
  const uint64_t groups = (std::max(std::min(end, readable), begin) - begin) / 8;
  const int unused = 32 - bits;
  const auto take = [&](uint64_t i, uint64_t value) {
    // Shifting the field to the top of a signed integer and back extends its sign.
    const auto top = static_cast<int32_t>(static_cast<uint32_t>(value) << unused);
    out[i - first] = static_cast<int16_t>(top >> unused);
  };
  ForEachField(bytes, bits, first, begin, take);
  if (groups > 0) kUnpackGroups[bits](bytes.data(), begin, groups, out.data() + (begin - first));
  ForEachField(bytes, bits, begin + 8 * groups, end, take);
}

uint64_t FindZeroField(std::span<const std::byte> bytes, int bits, uint64_t count) {
  if (!HasZeroField(bytes, bits, count)) return count;
  const uint64_t mask = (uint64_t{1} << bits) - 1;
  uint64_t first = count;
  ForEachField(bytes, bits, 0, count, [&](uint64_t i, uint64_t value) {
    if ((value & mask) == 0) first = std::min(first, i);
  });
  return first;
}

uint64_t CountSetBits(std::span<const std::byte> bytes, uint64_t begin, uint64_t end) {
  uint64_t total = 0;
  while (begin < end) {
    // The 64 bits start at a byte, so the first begin % 8 bits are skipped.
    const uint64_t offset = begin % 8;
    const uint64_t taken = std::min(end - begin, 64 - offset);
    uint64_t value = LoadWord(bytes, begin / 8) >> offset;
    if (taken < 64) value &= (uint64_t{1} << taken) - 1;
    total += SetBits(value);
    begin += taken;
  }
  return total;
}

}  // namespace kinglet

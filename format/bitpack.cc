// Packing and unpacking by 64-bit words.
#include "format/bitpack.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "format/little_endian.h"

namespace kinglet {
namespace {

// Calls take(i, word) for fields i in [first, end) with field i in the low bits of `word`; the bits
// above are whatever follows.
template <class Take>
void ForEachField(std::span<const std::byte> bytes, int bits, uint64_t first, uint64_t end,
                  Take&& take) {
  const auto width = static_cast<uint64_t>(bits);
  // A field starts at most 7 bits into its first byte and has at most 32, so eight bytes hold it.
  const uint64_t whole = bytes.size() < 8 ? 0 : std::min(end, (bytes.size() - 8) * 8 / width);
  uint64_t i = first;
  for (; i < whole; ++i) {
    const uint64_t bit = i * width;
    take(i, LoadLittle<uint64_t>(bytes.data() + bit / 8) >> (bit % 8));
  }
  for (; i < end; ++i) {
    const uint64_t bit = i * width;
    take(i, LoadWord(bytes, bit / 8) >> (bit % 8));
  }
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
               [&](uint64_t i, uint64_t word) { out[i] = static_cast<uint32_t>(word & mask); });
}

void UnpackSigned(std::span<const std::byte> bytes, int bits, std::span<int16_t> out,
                  uint64_t first) {
  const int unused = 32 - bits;
  ForEachField(bytes, bits, first, first + out.size(), [&](uint64_t i, uint64_t word) {
    // Moving the field to the top of a signed word and back copies its sign bit down.
    const auto top = static_cast<int32_t>(static_cast<uint32_t>(word) << unused);
    out[i - first] = static_cast<int16_t>(top >> unused);
  });
}

uint64_t FindZeroField(std::span<const std::byte> bytes, int bits, uint64_t count) {
  const uint64_t mask = (uint64_t{1} << bits) - 1;
  uint64_t zeros = 0;
  ForEachField(bytes, bits, 0, count,
               [&](uint64_t, uint64_t word) { zeros += (word & mask) == 0 ? 1 : 0; });
  if (zeros == 0) return count;
  uint64_t first = count;
  ForEachField(bytes, bits, 0, count, [&](uint64_t i, uint64_t word) {
    if ((word & mask) == 0) first = std::min(first, i);
  });
  return first;
}

uint64_t CountSetBits(std::span<const std::byte> bytes, uint64_t begin, uint64_t end) {
  uint64_t total = 0;
  while (begin < end) {
    // From `begin` there are 64 - begin % 8 bits of the word that are ours.
    const uint64_t offset = begin % 8;
    const uint64_t taken = std::min(end - begin, 64 - offset);
    uint64_t word = LoadWord(bytes, begin / 8) >> offset;
    if (taken < 64) word &= (uint64_t{1} << taken) - 1;
    total += static_cast<uint64_t>(std::popcount(word));
    begin += taken;
  }
  return total;
}

uint64_t LoadWord(std::span<const std::byte> bytes, uint64_t at) {
  if (at + 8 <= bytes.size()) return LoadLittle<uint64_t>(bytes.data() + at);
  std::byte padded[8] = {};
  if (at < bytes.size()) std::memcpy(padded, bytes.data() + at, bytes.size() - at);
  return LoadLittle<uint64_t>(padded);
}

}  // namespace kinglet

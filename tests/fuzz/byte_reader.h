// Decisions taken from a fuzzer's bytes; after the last byte, zeros.
#ifndef KINGLET_TESTS_FUZZ_BYTE_READER_H_
#define KINGLET_TESTS_FUZZ_BYTE_READER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace kinglet::fuzz {

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  bool ended() const { return bytes_.empty(); }
  uint8_t Byte() {
    if (bytes_.empty()) return 0;
    const auto byte = static_cast<uint8_t>(bytes_.front());
    bytes_ = bytes_.subspan(1);
    return byte;
  }
  bool Bit() { return (Byte() & 1) != 0; }
  // From `low` to `high`, both included.
  uint32_t Between(uint32_t low, uint32_t high) { return low + Byte() % (high - low + 1); }
  // Usually small, sometimes near 2^31, 2^32 and 2^64.
  uint64_t Number() {
    const uint8_t byte = Byte();
    if (byte < 240) return byte;
    constexpr uint64_t kEdges[] = {0x7FFFFFFF,        0x80000000,        0xFFFFFFFF,
                                   uint64_t{1} << 32, uint64_t{1} << 63, UINT64_MAX};
    return kEdges[byte % std::size(kEdges)] - Byte() % 3;
  }
  // Up to `count` bytes.
  std::span<const std::byte> Take(size_t count) {
    const auto taken = bytes_.first(std::min(count, bytes_.size()));
    bytes_ = bytes_.subspan(taken.size());
    return taken;
  }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace kinglet::fuzz

#endif  // KINGLET_TESTS_FUZZ_BYTE_READER_H_

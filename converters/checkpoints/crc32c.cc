#include "converters/checkpoints/crc32c.h"

#include <array>

#include "format/little_endian.h"

namespace kinglet {
namespace {

constexpr uint32_t kPolynomial = 0x82f63b78U;  // bits reversed
constexpr size_t kSlices = 8;

using CrcTables = std::array<std::array<uint32_t, 256>, kSlices>;

// Table s advances a byte over s further bytes of zeros, so that 8 bytes are looked up at once.
constexpr CrcTables MakeCrcTables() {
  CrcTables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? kPolynomial : 0U);
    tables[0][byte] = crc;
  }
  for (size_t slice = 1; slice < kSlices; ++slice) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t before = tables[slice - 1][byte];
      tables[slice][byte] = (before >> 8U) ^ tables[0][before & 0xffU];
    }
  }
  return tables;
}
constexpr CrcTables kCrcTables = MakeCrcTables();

}  // namespace

void Crc32c::Add(std::span<const std::byte> bytes) {
  for (; bytes.size() >= kSlices; bytes = bytes.subspan(kSlices)) {
    const uint64_t word = LoadLittle<uint64_t>(bytes.data()) ^ state_;
    uint32_t crc = 0;
    for (size_t i = 0; i < kSlices; ++i) {
      crc ^= kCrcTables[kSlices - 1 - i][(word >> (8 * i)) & 0xffU];
    }
    state_ = crc;
  }
  for (const std::byte byte : bytes) {
    state_ = (state_ >> 8U) ^ kCrcTables[0][(state_ ^ static_cast<uint32_t>(byte)) & 0xffU];
  }
}

}  // namespace kinglet

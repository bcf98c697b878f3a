// CRC-32C (Castagnoli's polynomial, RFC 3720 appendix B.4), the checksum of LevelDB's tables and
// TensorFlow's checkpoints.
#ifndef KINGLET_CONVERTERS_CHECKPOINTS_CRC32C_H_
#define KINGLET_CONVERTERS_CHECKPOINTS_CRC32C_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace kinglet {

// The checksum of bytes that come in pieces.
class Crc32c {
 public:
  void Add(std::span<const std::byte> bytes);
  uint32_t value() const { return ~state_; }
  // The form in which both formats store it, so that a checksum of data that contains checksums
  // stays useful.
  uint32_t masked() const { return ((value() >> 15U) | (value() << 17U)) + 0xa282ead8U; }

 private:
  uint32_t state_ = 0xffffffffU;
};

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_CHECKPOINTS_CRC32C_H_

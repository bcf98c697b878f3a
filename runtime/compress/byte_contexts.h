// What comes before a byte, in the forms that predict it: the last bytes, words, the line above.
#ifndef KINGLET_RUNTIME_COMPRESS_BYTE_CONTEXTS_H_
#define KINGLET_RUNTIME_COMPRESS_BYTE_CONTEXTS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace kinglet::compress {

class ByteContexts {
 public:
  static constexpr size_t kCount = 14;

  // Takes the byte that was appended to `text` last.
  void Add(std::span<const std::byte> text);
  // A hash of each context, different for each of them.
  const std::array<uint64_t, kCount>& hashes() const { return hashes_; }
  uint8_t last() const { return static_cast<uint8_t>(last_); }
  // The last eight bytes, the latest lowest.
  uint64_t last_eight() const { return last_; }

 private:
  std::array<uint64_t, kCount> hashes_ = {};
  uint64_t last_ = 0;
  uint64_t word_ = 0, word_before_ = 0, word_before_that_ = 0;
  uint64_t shapes_ = 0;  // kinds of the last bytes, four bits each
  size_t line_ = 0, line_above_ = 0;
};

// Spreads all bits of a number over the high bits of the result.
inline uint64_t Scatter(uint64_t number) {
  number = (number ^ number >> 32) * 0x9E3779B97F4A7C15u;
  return (number ^ number >> 29) * 0xBF58476D1CE4E5B9u;
}

}  // namespace kinglet::compress

#endif  // KINGLET_RUNTIME_COMPRESS_BYTE_CONTEXTS_H_

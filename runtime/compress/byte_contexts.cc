#include "runtime/compress/byte_contexts.h"

namespace kinglet::compress {
namespace {

bool IsLetter(unsigned byte) { return (byte | 32) - 'a' < 26 || byte >= 128; }

// A few kinds, so that text of the same form has the same kinds.
uint64_t ShapeOf(unsigned byte) {
  if (byte - 'a' < 26) return 1;
  if (byte - 'A' < 26) return 2;
  if (byte - '0' < 10) return 3;
  if (byte == ' ' || byte == '\t') return 4;
  if (byte == '\n') return 5;
  if (byte >= 128) return 6;
  if (byte < 32) return 7;
  return 8 + byte % 8;
}

}  // namespace

void ByteContexts::Add(std::span<const std::byte> text) {
  const auto byte = std::to_integer<unsigned>(text.back());
  last_ = last_ << 8 | byte;
  shapes_ = shapes_ << 4 | ShapeOf(byte);
  if (IsLetter(byte)) {
    const unsigned lower = byte < 128 ? byte | 32 : byte;
    word_ = Scatter(word_ + lower);
  } else if (word_ != 0) {
    word_before_that_ = word_before_;
    word_before_ = word_;
    word_ = 0;
  }
  if (byte == '\n') {
    line_above_ = line_;
    line_ = text.size();
  }
  const size_t column = text.size() - line_;
  const auto above = line_above_ + column < line_
                         ? std::to_integer<uint64_t>(text[line_above_ + column])
                         : uint64_t{0};
  const auto bytes = [&](int count) { return last_ & ((uint64_t{1} << 8 * count) - 1); };
  hashes_ = {bytes(1),
             bytes(2),
             bytes(3),
             bytes(4),
             bytes(5),
             bytes(6),
             last_,
             word_ + bytes(1),
             word_ + Scatter(word_before_ + 1) + bytes(1),
             word_ + Scatter(word_before_that_ + Scatter(word_before_)),
             word_ + Scatter(word_before_that_ + 2),
             above | bytes(2) << 8,
             shapes_ & 0xFFFFFFFF,
             bytes(3) >> 8 | above << 16};
  for (size_t i = 0; i < kCount; ++i) hashes_[i] = Scatter(hashes_[i] * kCount + i);
}

}  // namespace kinglet::compress

#include "tools/text_blocks.h"

namespace kinglet {

void TextBlocks::Add(uint32_t id) {
  ++tokens_;
  if (!end_) return;
  // A sentence that does not fit into the block begins the next one.
  if (tokens_ - block_ > size_ && sentence_ > block_) {
    ends_.push_back(sentence_);
    block_ = sentence_;
  }
  if (id != *end_) return;
  sentence_ = tokens_;
  if (sentence_ - block_ < size_) return;
  ends_.push_back(sentence_);
  block_ = sentence_;
}

bool TextBlocks::Begins(uint64_t token) {
  if (!end_) return token % size_ == 0;
  while (!ends_.empty() && ends_.front() <= token) {
    begin_ = ends_.front();
    ends_.pop_front();
  }
  return token == begin_;
}

std::optional<uint64_t> TextBlocks::EndOf(uint64_t token) {
  if (!end_) return (token / size_ + 1) * size_;
  Begins(token);
  if (!ends_.empty()) return ends_.front();
  return finished_ ? std::optional(tokens_) : std::nullopt;
}

std::optional<uint64_t> TextBlocks::KnownPartOf(uint64_t token) {
  const std::optional<uint64_t> end = EndOf(token);
  const bool fills = begin_ == block_ && sentence_ == block_ && tokens_ - block_ > size_;
  return end || !fills ? end : std::optional(tokens_);
}

}  // namespace kinglet

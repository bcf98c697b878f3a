// The blocks of a text that is scored in blocks, each from a fresh state: of a fixed number of
// tokens, or of complete sentences, as fairseq divides texts (TokenBlockDataset's break modes
// "none" and "complete").
#ifndef KINGLET_TOOLS_TEXT_BLOCKS_H_
#define KINGLET_TOOLS_TEXT_BLOCKS_H_

#include <cstdint>
#include <deque>
#include <optional>

namespace kinglet {

// Tokens are numbered from 0 in the order in which they are predicted.
class TextBlocks {
 public:
  // Blocks of `size` >= 1 tokens.
  explicit TextBlocks(uint64_t size) : size_(size) {}
  // Blocks of as many complete sentences as have at most `size` tokens, or of one longer sentence.
  // The token `end` ends a sentence.
  TextBlocks(uint64_t size, uint32_t end) : size_(size), end_(end) {}

  // The next token of the text.
  void Add(uint32_t id);
  // After the last token.
  void Finish() { finished_ = true; }

  // Whether a block begins with the token. REQUIRES, here and below: tokens in ascending order.
  bool Begins(uint64_t token);
  // The number after the block's last token; nullopt until the tokens added tell.
  std::optional<uint64_t> EndOf(uint64_t token);
  // EndOf, or in the sentence of a block that it fills alone the number of tokens added: a text
  // without an end of a sentence need not be kept.
  std::optional<uint64_t> KnownPartOf(uint64_t token);

 private:
  const uint64_t size_;
  const std::optional<uint32_t> end_;
  bool finished_ = false;
  uint64_t tokens_ = 0;                // added
  uint64_t block_ = 0, sentence_ = 0;  // where the open block and the open sentence begin
  uint64_t begin_ = 0;                 // of the block that was asked for last
  std::deque<uint64_t> ends_;          // of the blocks from there on that are known
};

}  // namespace kinglet

#endif  // KINGLET_TOOLS_TEXT_BLOCKS_H_

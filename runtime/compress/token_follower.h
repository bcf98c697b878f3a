// Splits text into a model's tokens while it comes byte by byte, so that a decoder, which does not
// know the next byte, finds the same tokens. The tokens need not be those of the model's tokenizer:
// they only decide what the network predicts from.
#ifndef KINGLET_RUNTIME_COMPRESS_TOKEN_FOLLOWER_H_
#define KINGLET_RUNTIME_COMPRESS_TOKEN_FOLLOWER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/compress/token_spellings.h"

namespace kinglet::compress {

class TokenFollower {
 public:
  struct Token {
    std::optional<uint32_t> rank;  // nullopt: no token is spelt so
    uint32_t length;               // bytes
  };

  // REQUIRES: the spellings, which are of this style, outlive the follower.
  TokenFollower(const TokenSpellings& spellings, TokenStyle style);

  // Appends the tokens that the byte completes to `done`.
  void Add(uint8_t byte, std::vector<Token>& done);
  // Forgets the token that was begun.
  void Reset();

  // The bytes of the token that was begun; 0 between tokens.
  uint32_t depth() const { return static_cast<uint32_t>(begun_.size()); }
  // Whether no token begins so.
  bool lost() const { return lost_; }
  // The spellings that continue the token, and whether one more ends here, which has the rank
  // before them. REQUIRES: !lost().
  TokenSpellings::Range longer() const { return {range_.low + (ends_here() ? 1 : 0), range_.high}; }
  bool ends_here() const {
    return !begun_.empty() && !range_.empty() && spellings_->LengthOf(range_.low) == begun_.size();
  }
  // Whether the last byte of the token is a mark, neither letter nor digit.
  bool ends_with_mark() const;

 private:
  bool Extend(uint8_t byte);
  void AddToWords(uint8_t byte, std::vector<Token>& done);
  void AddToPieces(uint8_t byte, std::vector<Token>& done);
  void FinishWord(std::vector<Token>& done);
  // Emits the first bytes as the token found there, and adds the others again.
  void Split(std::vector<Token>& done);

  const TokenSpellings* spellings_;
  TokenStyle style_;
  TokenSpellings::Range range_;
  std::string begun_;
  bool lost_ = false;
  uint32_t best_rank_ = 0, best_length_ = 0;  // the longest token that begins so, if any
};

}  // namespace kinglet::compress

#endif  // KINGLET_RUNTIME_COMPRESS_TOKEN_FOLLOWER_H_

// A text that was split into tokens.
#ifndef KINGLET_RUNTIME_TEXT_TOKENIZED_TEXT_H_
#define KINGLET_RUNTIME_TEXT_TOKENIZED_TEXT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/memory_budget.h"

namespace kinglet {

inline constexpr uint32_t kNoPieceId = UINT32_MAX;

// The tokens of a text. Offsets are 32-bit values; texts of 2^30 bytes and more are refused.
struct TokenizedText {
  struct Token {
    uint32_t id;            // kNoPieceId if pieces have no ids (byte-pair codes, words)
    uint32_t begin, end;    // the token's bytes in the text
    uint32_t piece, bytes;  // the token's spelling: [piece, piece + bytes) of `spellings`
  };
  std::string spellings;
  std::vector<Token> tokens;
  std::vector<uint8_t> segments;  // WordPiece: 0 or 1 for each token; else empty
  MemoryClaim memory = {};        // the memory claimed for the text before it was tokenized

  std::string_view Piece(const Token& token) const {
    return std::string_view(spellings).substr(token.piece, token.bytes);
  }
};

// Appends a token with a spelling of its own.
inline void AppendToken(uint32_t id, uint32_t begin, uint32_t end, std::string_view spelling,
                        TokenizedText& tokenized) {
  tokenized.tokens.push_back({id, begin, end, static_cast<uint32_t>(tokenized.spellings.size()),
                              static_cast<uint32_t>(spelling.size())});
  tokenized.spellings += spelling;
}

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_TEXT_TOKENIZED_TEXT_H_

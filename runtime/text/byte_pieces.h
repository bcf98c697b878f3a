// Tokenizes text as GPT-2 does (Radford et al. 2019): byte-pair encoding of bytes, as Hugging
// Face's tokenizers compute it.
#ifndef KINGLET_RUNTIME_TEXT_BYTE_PIECES_H_
#define KINGLET_RUNTIME_TEXT_BYTE_PIECES_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "format/text_tables.h"
#include "kinglet/status.h"
#include "runtime/text/prefix_trie.h"
#include "runtime/text/spelling.h"
#include "runtime/text/text_part.h"
#include "runtime/text/tokenized_text.h"

namespace kinglet {

// Immutable; may be shared by threads. Does not move.
class BytePieces {
 public:
  // REQUIRES: CheckTextTables accepts the tables.
  explicit BytePieces(BytePieceTables tables);
  BytePieces(const BytePieces&) = delete;
  BytePieces& operator=(const BytePieces&) = delete;

  const BytePieceTables& tables() const { return tables_; }

  // Tokenizes any bytes. A mark in the text is one token. A byte that belongs to no character
  // counts as a sign. Errors: KINGLET_INVALID_ARGUMENT for a text that is too long.
  Result<TokenizedText> Encode(std::string_view text, TextPart& part) const;

  // The piece that is written like this, in the alphabet of bytes.
  std::optional<uint32_t> IdOf(std::string_view piece) const;
  uint32_t PieceOfByte(unsigned char byte) const { return byte_ids_[byte]; }
  // The bytes that the piece adds. Special marks spell nothing.
  Spelling Spell(uint32_t id) const;

 private:
  struct Merge {
    uint32_t rank;
    uint32_t made;
  };
  void EncodePlain(std::string_view text, uint32_t begin, uint32_t end, bool space_before,
                   TokenizedText& tokenized) const;
  void EncodeWord(std::string_view word, uint32_t begin, bool space_before,
                  TokenizedText& tokenized) const;
  const Merge* MergeOf(uint32_t left, uint32_t right) const;

  BytePieceTables tables_;
  std::array<uint32_t, 256> byte_ids_;
  std::unordered_map<std::string_view, uint32_t> ids_;
  std::unordered_map<uint64_t, Merge> merges_;  // by both ids
  PrefixTrie marks_;
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_TEXT_BYTE_PIECES_H_

// Tokenizes text for BERT: words by BasicTokenizer's rules, then the longest pieces (Wu et al.
// 2016), as transformers 4.30's BertTokenizer.
#ifndef KINGLET_RUNTIME_TEXT_WORD_PIECES_H_
#define KINGLET_RUNTIME_TEXT_WORD_PIECES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/text_tables.h"
#include "kinglet/status.h"
#include "runtime/text/prefix_trie.h"
#include "runtime/text/tokenized_text.h"

namespace kinglet {

inline constexpr std::string_view kContinues = "##";

// Immutable; may be shared by threads. Does not move.
class WordPieces {
 public:
  // REQUIRES: CheckTextTables accepts the tables.
  explicit WordPieces(WordPieceTables tables);
  WordPieces(const WordPieces&) = delete;
  WordPieces& operator=(const WordPieces&) = delete;

  const WordPieceTables& tables() const { return tables_; }
  uint32_t unknown() const { return unknown_; }

  // "A" gives [CLS] A [SEP]; "A ||| B" gives [CLS] A [SEP] B [SEP], and segment 1 from B on. [CLS]
  // and [SEP] are not added if the vocabulary lacks them; marks in the text are not split. A word
  // without pieces, or of more than 100 characters, is [UNK]. Errors: KINGLET_INVALID_ARGUMENT for
  // a text that is too long.
  Result<TokenizedText> Encode(std::string_view text) const;

 private:
  struct Letter {
    uint32_t code;
    uint32_t begin, end;  // in the text
  };
  void EncodePart(std::string_view text, uint32_t begin, uint32_t end,
                  TokenizedText& tokenized) const;
  void EncodePlain(std::string_view text, uint32_t begin, uint32_t end,
                   TokenizedText& tokenized) const;
  void EncodeWord(const std::vector<Letter>& word, TokenizedText& tokenized) const;
  void AddLetters(const Letter& letter, std::vector<Letter>& word) const;
  void Put(uint32_t id, uint32_t begin, uint32_t end, TokenizedText& tokenized) const;
  void PutMark(std::optional<uint32_t> id, uint32_t place, TokenizedText& tokenized) const;

  WordPieceTables tables_;
  uint32_t unknown_ = 0;
  std::optional<uint32_t> begin_mark_, end_mark_;  // [CLS], [SEP]
  PrefixTrie first_, continued_, marks_;
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_TEXT_WORD_PIECES_H_

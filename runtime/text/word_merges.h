// Splits words by byte-pair codes, as subword-nmt and fastBPE do (Sennrich et al. 2016). Every
// token of a word but the last ends with "@@".
#ifndef KINGLET_RUNTIME_TEXT_WORD_MERGES_H_
#define KINGLET_RUNTIME_TEXT_WORD_MERGES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "format/text_tables.h"
#include "kinglet/status.h"
#include "runtime/text/tokenized_text.h"

namespace kinglet {

inline constexpr std::string_view kJoinMark = "@@";

// Immutable; may be shared by threads. Does not move.
class WordMerges {
 public:
  // REQUIRES: CheckTextTables accepts the tables.
  explicit WordMerges(MergeTables tables);
  WordMerges(const WordMerges&) = delete;
  WordMerges& operator=(const WordMerges&) = delete;

  const MergeTables& tables() const { return tables_; }

  // Tokenizes any bytes. "\r", "\n" and spaces at the text's ends are ignored; words are split at
  // spaces (U+0020 only). A byte that belongs to no character counts as a character. Errors:
  // KINGLET_INVALID_ARGUMENT for a text that is too long.
  Result<TokenizedText> Encode(std::string_view text) const;

 private:
  struct Merge {
    uint32_t rank;
    uint32_t symbol;
  };
  uint32_t SymbolId(const std::string& symbol) const;
  void EncodeWord(std::string_view word, uint32_t offset, TokenizedText& tokenized) const;
  std::vector<std::string> MergeSymbols(std::string_view word) const;
  // The two tokens of which a merge made `token`, which ends its word if `last` is true. Returns
  // nullopt if no merge made the token of two that are not empty.
  std::optional<std::pair<std::string, std::string>> PartsOf(const std::string& token,
                                                             bool last) const;
  void SplitUnknown(const std::string& token, bool last, std::vector<std::string>& tokens) const;
  bool Known(const std::string& token, bool last) const;

  MergeTables tables_;
  std::unordered_map<std::string, uint32_t> symbols_;
  std::unordered_map<uint64_t, Merge> merges_;  // by both symbols
  std::vector<uint32_t> made_by_;               // by symbol: its first merge, or kNoMerge
  std::unordered_set<std::string_view> known_;
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_TEXT_WORD_MERGES_H_

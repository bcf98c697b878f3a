// Text tables chosen by a fuzzer's bytes, as no converter writes them. Their symbols are made of a
// few letters and of one another, so that tables fit each other and texts of the same symbols.
#ifndef KINGLET_TESTS_FUZZ_RANDOM_TABLES_H_
#define KINGLET_TESTS_FUZZ_RANDOM_TABLES_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/text_tables.h"
#include "tests/fuzz/byte_reader.h"

namespace kinglet::fuzz {

// Makes symbols of one to three letters, or parts of marks that tokenizers look for; and of the
// symbols that were made before: their parts, two of them joined, and themselves once more.
class SymbolMaker {
 public:
  explicit SymbolMaker(ByteReader& bytes);

  std::string Next();
  // Splits a symbol between two characters; both parts are then among those made. The second may
  // be empty.
  std::pair<std::string, std::string> Halves(const std::string& symbol);
  // Every symbol once.
  const std::vector<std::string>& made() const { return made_; }
  const std::string& Add(std::string_view symbol);

 private:
  std::string AnyLetters();
  std::string OwnLetters();

  ByteReader& bytes_;
  std::vector<std::string_view> letters_;
  std::vector<std::string> made_;
};

// Mostly tables that CheckTextTables accepts.
TextTables MakeRandomTables(ByteReader& bytes, SymbolMaker& symbols);
// SentencePiece's precompiled_charsmap with any links between its units.
std::string MakeRandomMap(ByteReader& bytes);

}  // namespace kinglet::fuzz

#endif  // KINGLET_TESTS_FUZZ_RANDOM_TABLES_H_

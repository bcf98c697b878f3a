// Text tables chosen by a fuzzer's bytes, as no converter writes them: their symbols are joined
// from a few letters and from parts of the marks that tokenizers look for.
#ifndef KINGLET_TESTS_FUZZ_RANDOM_TABLES_H_
#define KINGLET_TESTS_FUZZ_RANDOM_TABLES_H_

#include <string>

#include "format/text_tables.h"
#include "tests/fuzz/byte_reader.h"

namespace kinglet::fuzz {

// One to four letters or parts of marks.
std::string RandomSymbol(ByteReader& bytes);
// Mostly tables that CheckTextTables accepts.
TextTables MakeRandomTables(ByteReader& bytes);
// SentencePiece's precompiled_charsmap with any links between its units.
std::string MakeRandomMap(ByteReader& bytes);

}  // namespace kinglet::fuzz

#endif  // KINGLET_TESTS_FUZZ_RANDOM_TABLES_H_

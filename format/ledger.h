// The ledger: what each byte of a model file is for. Entries are adjacent, the first starts at 0
// and the last ends at the file's size, so that they count every byte once.
#ifndef KINGLET_FORMAT_LEDGER_H_
#define KINGLET_FORMAT_LEDGER_H_

#include <cstdint>
#include <string>
#include <vector>

namespace kinglet {

// The purpose of a range of bytes.
enum class LedgerPart : uint8_t {
  kFrame,       // the fixed 64 bytes at the start
  kHeader,      // the FlatBuffers header
  kValues,      // dense float values
  kCodes,       // packed integers
  kScales,      // scales of packed integers
  kMask,        // which entries are stored
  kVocabulary,  // words and ranks
  kTokenizer,   // tables of the tokenizer
  kPadding,     // zeros up to the next multiple of 64
};
const char* LedgerPartName(LedgerPart part);  // "codes"

struct LedgerEntry {
  std::string owner;  // tensor name, "vocabulary.words", or empty for frame, header and padding
  LedgerPart part;
  uint64_t offset;
  uint64_t bytes;
};

struct Ledger {
  std::vector<LedgerEntry> entries;  // by offset
  uint64_t Total() const;
  uint64_t Total(LedgerPart part) const;
};

}  // namespace kinglet

#endif  // KINGLET_FORMAT_LEDGER_H_

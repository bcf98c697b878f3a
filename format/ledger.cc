// Sums over ledger entries.
#include "format/ledger.h"

#include <numeric>

namespace kinglet {

const char* LedgerPartName(LedgerPart part) {
  switch (part) {
    case LedgerPart::kFrame:
      return "frame";
    case LedgerPart::kHeader:
      return "header";
    case LedgerPart::kValues:
      return "values";
    case LedgerPart::kCodes:
      return "codes";
    case LedgerPart::kScales:
      return "scales";
    case LedgerPart::kMask:
      return "mask";
    case LedgerPart::kVocabulary:
      return "vocabulary";
    case LedgerPart::kTokenizer:
      return "tokenizer";
    case LedgerPart::kPadding:
      return "padding";
  }
  return "unknown";
}

uint64_t Ledger::Total() const {
  return std::accumulate(entries.begin(), entries.end(), uint64_t{0},
                         [](uint64_t sum, const LedgerEntry& entry) { return sum + entry.bytes; });
}

uint64_t Ledger::Total(LedgerPart part) const {
  return std::accumulate(entries.begin(), entries.end(), uint64_t{0},
                         [part](uint64_t sum, const LedgerEntry& entry) {
                           return sum + (entry.part == part ? entry.bytes : 0);
                         });
}

}  // namespace kinglet

// The n-grams of a back-off model in memory, as they are written.
#ifndef KINGLET_RUNTIME_NGRAMS_NGRAM_TABLE_H_
#define KINGLET_RUNTIME_NGRAMS_NGRAM_TABLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "kinglet/status.h"

namespace kinglet {

// n-grams of one length, in the order of NgramLevel.
struct NgramEntries {
  std::vector<uint32_t> words;       // the last word of each; of single words 0, 1, 2, ..
  std::vector<float> probabilities;  // log10, finite, at most 0
  std::vector<float> backoffs;       // log10, finite; empty for the longest
  std::vector<uint32_t> children;    // first child of each, and the end of the last ones'
};

struct NgramTable {
  std::vector<std::string> words;     // ascending bytes; <unk>, <s> and </s> are among them
  bool adds_unknown = false;          // <unk> was added, with probability kMissingUnknown
  std::vector<NgramEntries> lengths;  // by length - 1; 1 to kMaxNgramOrder
};

// The bytes of an n-gram file. Of 0 bits the values stay as they are; of 2 to 16, values of n-grams
// of two words and more become the nearest of 2^bits values chosen for each length. Back-off
// weights of 0 stay 0. Errors: KINGLET_INVALID_ARGUMENT for a table of more than 4 GiB of words.
// May throw std::bad_alloc.
Result<std::vector<std::byte>> EncodeNgrams(const NgramTable& table, uint32_t bits);

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_NGRAMS_NGRAM_TABLE_H_

// Where each part of an n-gram file lies (docs/NGRAMS.md).
#ifndef KINGLET_RUNTIME_NGRAMS_NGRAM_LAYOUT_H_
#define KINGLET_RUNTIME_NGRAMS_NGRAM_LAYOUT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kinglet/status.h"

namespace kinglet {

inline constexpr uint32_t kMaxNgramOrder = 8;
// Children are numbered by 32 bits, the end of the last ones included.
inline constexpr uint64_t kMaxNgrams = UINT32_MAX - 1;
inline constexpr uint32_t kLeastNgramBits = 2, kMostNgramBits = 16;

// log10 p of unknown words, if the ARPA file has no <unk>: KenLM's.
inline constexpr float kMissingUnknown = -100;

// What determines the places of all parts.
struct NgramHeader {
  uint32_t order = 0;
  uint32_t bits = 0;          // of probabilities and back-off weights; 0 means floats of 32 bits
  bool adds_unknown = false;  // the ARPA file has no <unk>
  uint64_t word_bytes = 0;
  std::array<uint64_t, kMaxNgramOrder> counts{};  // of each length; 0 beyond the order

  bool operator==(const NgramHeader&) const = default;
};

// The n-grams of one length, sorted by the n-gram of all words but the last, then by the last word.
// A record has the fields last word (not for single words), probability, back-off weight and first
// child (not for the longest n-grams). One record more than n-grams ends the children of the last.
struct NgramLevel {
  uint64_t count = 0;
  int word_bits = 0, probability_bits = 0, backoff_bits = 0, child_bits = 0;  // 0: no such field
  uint64_t probabilities_at = 0, backoffs_at = 0;  // codebooks; 0: the fields are floats
  uint64_t records_at = 0;

  int record_bits() const { return word_bits + probability_bits + backoff_bits + child_bits; }
  uint64_t records() const { return count + 1; }
  uint64_t record_bytes() const {
    return (records() * static_cast<uint64_t>(record_bits()) + 7) / 8;
  }
};

struct NgramLayout {
  NgramHeader header;
  uint64_t word_ends_at = 0, words_at = 0;
  std::vector<NgramLevel> levels;  // by length - 1
  uint64_t file_size = 0;
};

inline constexpr size_t kNgramHeaderBytes = 128;
inline constexpr std::string_view kNgramMagic = "KNG1";
// The digest of all bytes after it lies here.
inline constexpr size_t kNgramDigestAt = 16, kNgramDigestedFrom = 32;

// KINGLET_CORRUPT, whose text starts with `origin`, for a header that no writer makes.
Result<NgramLayout> LayOutNgrams(const std::string& origin, const NgramHeader& header);

// The header's bytes without the digest, which stays zero.
std::array<std::byte, kNgramHeaderBytes> EncodeNgramHeader(const NgramLayout& layout);
// KINGLET_CORRUPT, KINGLET_UNSUPPORTED_VERSION. REQUIRES: `size` is the file's.
Result<NgramLayout> DecodeNgramHeader(const std::string& origin, std::span<const std::byte> start,
                                      uint64_t size);

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_NGRAMS_NGRAM_LAYOUT_H_

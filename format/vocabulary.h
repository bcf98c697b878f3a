// The model's words: exact look-up both ways, stored compactly.
//
// In the file the words are sorted by bytes and front-coded in buckets (length of the prefix shared
// with the word before, then the rest), and a table of ceil(log2 V)-bit integers gives each id's
// place in that order. In memory the strings stay front-coded; a look-up decodes at most one bucket
// after a binary search. Words are byte strings: UTF-8 by habit, but nothing requires it; none is
// empty and no two are equal. Immutable; may be shared by threads.
#ifndef KINGLET_FORMAT_VOCABULARY_H_
#define KINGLET_FORMAT_VOCABULARY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kinglet/status.h"

namespace kinglet {

// The two segments of the file that hold a vocabulary.
struct VocabularySegments {
  std::vector<std::byte> words;  // front-coded buckets
  std::vector<std::byte> ranks;  // id -> place in byte order, packed
};

// The same where they lie, and how many words they are.
struct StoredVocabulary {
  uint32_t size;
  std::span<const std::byte> words;
  std::span<const std::byte> ranks;
};

class Vocabulary {
 public:
  // Packs `words` (index = id). Refuses an empty word, a word over 65,535 bytes and a repeated
  // word, naming both ids.
  static Result<VocabularySegments> Pack(std::span<const std::string> words);

  // Reads and fully checks the segments: every length, order, uniqueness and that ranks are a
  // permutation. The spans must outlive the Vocabulary.
  // Errors: KINGLET_INVALID_MODEL; the text starts with "vocabulary".
  static Result<Vocabulary> FromSegments(uint32_t size, std::span<const std::byte> words,
                                         std::span<const std::byte> ranks);

  uint32_t size() const { return static_cast<uint32_t>(rank_of_id_.size()); }
  const StoredVocabulary& stored() const { return stored_; }
  std::string Word(uint32_t id) const;  // REQUIRES: id < size()
  std::optional<uint32_t> Find(std::string_view word) const;

 private:
  explicit Vocabulary(const StoredVocabulary& stored) : stored_(stored) {}
  Status ReadWords();
  Status ReadRanks();
  std::string_view BucketHead(size_t bucket) const;

  StoredVocabulary stored_;
  std::vector<uint32_t> bucket_offsets_;  // byte offset of each bucket in words_
  std::vector<uint32_t> rank_of_id_;
  std::vector<uint32_t> id_of_rank_;
};

}  // namespace kinglet

#endif  // KINGLET_FORMAT_VOCABULARY_H_

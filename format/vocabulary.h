// The model's words: exact look-up both ways, stored compactly.
//
// In the file the V words are sorted by bytes and front-coded in buckets: each word is stored as
// the length of the prefix it shares with the word before, and the rest. A table of ceil(log2
// V)-bit integers gives each id's rank in that order. In memory both stay as they are; a look-up is
// a binary search over buckets and decodes at most one bucket. Words are byte strings,
// usually UTF-8; no word is empty and no two are equal. Immutable; may be shared by threads.
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

// The two segments of a vocabulary, as bytes of their own.
struct VocabularySegments {
  std::vector<std::byte> words;  // front-coded buckets
  std::vector<std::byte> ranks;  // id -> rank in byte order, packed
};

// The two segments of a vocabulary, as views into a file's bytes.
struct StoredVocabulary {
  uint32_t size;  // words
  std::span<const std::byte> words;
  std::span<const std::byte> ranks;
};

class Vocabulary {
 public:
  // Packs `words` (index = id). Errors: KINGLET_INVALID_ARGUMENT for an empty word, a word of more
  // than 65,535 bytes and a repeated word, naming both ids.
  static Result<VocabularySegments> Pack(std::span<const std::string> words);

  // The memory that a vocabulary of `size` words takes beyond its segments.
  static uint64_t HeldBytes(uint64_t size);

  // Reads the segments and checks them fully: every length, the order, uniqueness, and that ranks
  // are a permutation. REQUIRES: the bytes outlive the Vocabulary. Errors: KINGLET_INVALID_MODEL;
  // the text starts with "vocabulary".
  static Result<Vocabulary> FromSegments(uint32_t size, std::span<const std::byte> words,
                                         std::span<const std::byte> ranks);

  uint32_t size() const { return stored_.size; }
  const StoredVocabulary& stored() const { return stored_; }
  // Bytes of all words together: at most 32 times the segment, which has one complete word in each
  // bucket.
  uint64_t word_bytes() const { return word_bytes_; }
  std::string Word(uint32_t id) const;  // REQUIRES: id < size()
  std::optional<uint32_t> Find(std::string_view word) const;
  // The ids of the words that begin with `prefix`, in the byte order of the words. An empty prefix
  // gives all ids.
  std::span<const uint32_t> WithPrefix(std::string_view prefix) const;
  // Calls f(id, word) for the words of WithPrefix in their order; `word` is valid during the call
  // only.
  template <class F>
  void ForEachWithPrefix(std::string_view prefix, const F& f) const;

 private:
  // Decodes the words one after the other in byte order.
  class Reader;

  explicit Vocabulary(const StoredVocabulary& stored) : stored_(stored) {}
  Status ReadWords();
  Status ReadRanks();
  uint32_t RankOfId(uint32_t id) const;
  std::string_view BucketHead(size_t bucket) const;
  // The number of words below `text` in byte order.
  uint32_t RankOf(std::string_view text) const;

  StoredVocabulary stored_;
  uint64_t word_bytes_ = 0;
  std::vector<uint32_t> bucket_offsets_;  // where each bucket begins in stored_.words
  std::vector<uint32_t> id_of_rank_;
};

class Vocabulary::Reader {
 public:
  // Starts with the first word of the bucket that has the word of this rank.
  Reader(const Vocabulary& vocabulary, uint32_t rank);
  // The rank of the next word.
  uint32_t rank() const { return rank_; }
  // Valid until the next call. REQUIRES: rank() < size().
  std::string_view Next();

 private:
  const Vocabulary& vocabulary_;
  uint32_t rank_;
  size_t at_ = 0;
  std::string word_;
};

template <class F>
void Vocabulary::ForEachWithPrefix(std::string_view prefix, const F& f) const {
  const std::span<const uint32_t> ids = WithPrefix(prefix);
  if (ids.empty()) return;
  const auto first = static_cast<uint32_t>(ids.data() - id_of_rank_.data());
  const auto last = first + static_cast<uint32_t>(ids.size());
  Reader reader(*this, first);
  while (reader.rank() < last) {
    const uint32_t rank = reader.rank();
    const std::string_view word = reader.Next();
    if (rank >= first) f(id_of_rank_[rank], word);
  }
}

}  // namespace kinglet

#endif  // KINGLET_FORMAT_VOCABULARY_H_

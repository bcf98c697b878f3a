// Front coding of sorted words (docs/FORMAT.md, "Vocabulary").
#include "format/vocabulary.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

#include "format/bitpack.h"
#include "format/message_text.h"

namespace kinglet {
namespace {

constexpr uint32_t kBucketWords = 32;
constexpr size_t kMaxWordBytes = 65535;
// A nibble of this value means that the rest of the number follows the entry's first byte.
constexpr size_t kNibbleEnd = 15;
constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

int RankBits(uint32_t size) { return std::bit_width(size - 1); }

std::string_view AsText(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// One stored word: the length of the prefix that it shares with the word before, and the rest.
struct Entry {
  size_t prefix;
  std::string_view rest;  // never empty
  size_t end;             // offset of the next entry
};

// Reads a variable-length number below 2^21: 7-bit groups, least significant first; the top bit of
// a byte is set if another byte follows. Only zero itself may end with a zero byte, so each number
// has one form.
std::optional<size_t> ReadVarint(std::span<const std::byte> bytes, size_t& at) {
  size_t value = 0;
  for (int shift = 0; shift <= 14; shift += 7) {
    if (at >= bytes.size()) return std::nullopt;
    const auto byte = static_cast<size_t>(bytes[at++]);
    value |= (byte & 0x7F) << shift;
    if (byte < 0x80) {
      if (byte == 0 && shift > 0) return std::nullopt;
      return value;
    }
  }
  return std::nullopt;
}

void AppendVarint(size_t value, std::vector<std::byte>& bytes) {
  for (; value >= 0x80; value >>= 7) bytes.push_back(static_cast<std::byte>(value | 0x80));
  bytes.push_back(static_cast<std::byte>(value));
}

// The entry at `at`. Returns nullopt for an entry that goes beyond the bytes or is not in its
// shortest form.
std::optional<Entry> ReadEntry(std::span<const std::byte> bytes, size_t at) {
  if (at >= bytes.size()) return std::nullopt;
  const auto lengths = static_cast<size_t>(bytes[at++]);
  size_t prefix = lengths >> 4;
  size_t rest = lengths & 15;
  if (prefix == kNibbleEnd) {
    const std::optional<size_t> more = ReadVarint(bytes, at);
    if (!more) return std::nullopt;
    prefix += *more;
  }
  if (rest == kNibbleEnd) {
    const std::optional<size_t> more = ReadVarint(bytes, at);
    if (!more) return std::nullopt;
    rest += *more;
  }
  rest += 1;  // a word is never a prefix of the word before
  if (prefix + rest > kMaxWordBytes || rest > bytes.size() - at) return std::nullopt;
  return Entry{prefix, AsText(bytes.subspan(at, rest)), at + rest};
}

void AppendEntry(size_t prefix, std::string_view rest, std::vector<std::byte>& bytes) {
  const size_t length = rest.size() - 1;
  bytes.push_back(
      static_cast<std::byte>(std::min(prefix, kNibbleEnd) << 4 | std::min(length, kNibbleEnd)));
  if (prefix >= kNibbleEnd) AppendVarint(prefix - kNibbleEnd, bytes);
  if (length >= kNibbleEnd) AppendVarint(length - kNibbleEnd, bytes);
  const auto raw = std::as_bytes(std::span(rest.data(), rest.size()));
  bytes.insert(bytes.end(), raw.begin(), raw.end());
}

// An entry that ReadWords has checked.
Entry CheckedEntry(std::span<const std::byte> bytes, size_t at) { return *ReadEntry(bytes, at); }

Status RefuseVocabulary(StatusCode code, const std::string& where, const std::string& expected,
                        const std::string& found) {
  return Status::Refusal(code, "vocabulary", where, expected, found);
}

}  // namespace

uint64_t Vocabulary::HeldBytes(uint64_t size) {
  return size * sizeof(uint32_t) + (size / kBucketWords + 1) * sizeof(uint32_t);
}

Result<VocabularySegments> Vocabulary::Pack(std::span<const std::string> words) {
  if (words.size() >= kNone) {
    return RefuseVocabulary(KINGLET_INVALID_ARGUMENT, "size", "fewer than 2^32 - 1 words",
                            std::to_string(words.size()));
  }
  for (size_t id = 0; id < words.size(); ++id) {
    if (words[id].empty() || words[id].size() > kMaxWordBytes) {
      return RefuseVocabulary(KINGLET_INVALID_ARGUMENT, Numbered("word", id), "1 to 65535 bytes",
                              BytesText(words[id].size()));
    }
  }
  std::vector<uint32_t> id_of_rank(words.size());
  std::iota(id_of_rank.begin(), id_of_rank.end(), 0u);
  // char_traits<char> compares as unsigned bytes. Equal words: the lower id first.
  std::sort(id_of_rank.begin(), id_of_rank.end(), [&](uint32_t a, uint32_t b) {
    const int order = words[a].compare(words[b]);
    return order != 0 ? order < 0 : a < b;
  });

  VocabularySegments segments;
  std::vector<uint32_t> rank_of_id(words.size());
  std::string_view previous;
  for (size_t rank = 0; rank < id_of_rank.size(); ++rank) {
    const std::string_view word = words[id_of_rank[rank]];
    rank_of_id[id_of_rank[rank]] = static_cast<uint32_t>(rank);
    if (word == previous) {
      return RefuseVocabulary(
          KINGLET_INVALID_ARGUMENT, Numbered("word", id_of_rank[rank]), "a word of its own",
          Quoted(word) + " again, as in " + Numbered("word", id_of_rank[rank - 1]));
    }
    size_t prefix = 0;
    if (rank % kBucketWords != 0) {
      const auto differ = std::mismatch(previous.begin(), previous.end(), word.begin(), word.end());
      prefix = static_cast<size_t>(differ.first - previous.begin());
    }
    AppendEntry(prefix, word.substr(prefix), segments.words);
    previous = word;
  }
  if (segments.words.size() >= kNone) {
    return RefuseVocabulary(KINGLET_INVALID_ARGUMENT, "words", "fewer than 2^32 - 1 bytes",
                            std::to_string(segments.words.size()));
  }
  if (!words.empty()) {
    BitPacker packer(RankBits(static_cast<uint32_t>(words.size())), words.size());
    for (uint32_t rank : rank_of_id) packer.Append(rank);
    segments.ranks = packer.Finish();
  }
  return segments;
}

Result<Vocabulary> Vocabulary::FromSegments(uint32_t size, std::span<const std::byte> words,
                                            std::span<const std::byte> ranks) {
  // The shortest word takes two bytes, so sizes are bounded before anything is allocated.
  if (size == 0 || size > words.size() / 2) {
    return RefuseVocabulary(
        KINGLET_INVALID_MODEL, "size",
        "1 to " + std::to_string(words.size() / 2) + " words in " + BytesText(words.size()),
        std::to_string(size));
  }
  if (words.size() >= kNone) {
    return RefuseVocabulary(KINGLET_INVALID_MODEL, "words", "fewer than 2^32 - 1 bytes",
                            std::to_string(words.size()));
  }
  Vocabulary vocabulary({size, words, ranks});
  KINGLET_RETURN_IF_ERROR(vocabulary.ReadWords());
  KINGLET_RETURN_IF_ERROR(vocabulary.ReadRanks());
  return vocabulary;
}

Status Vocabulary::ReadWords() {
  const uint32_t size = stored_.size;
  bucket_offsets_.reserve((size + kBucketWords - 1) / kBucketWords);
  std::string previous;
  size_t at = 0;
  for (uint32_t rank = 0; rank < size; ++rank) {
    const auto refuse = [&](const std::string& expected, const std::string& found) {
      return RefuseVocabulary(
          KINGLET_INVALID_MODEL,
          Numbered("words, byte", at) + " (" + Numbered("word", rank) + " in byte order)", expected,
          found);
    };
    const std::optional<Entry> entry = ReadEntry(stored_.words, at);
    if (!entry) return refuse("a word", "bytes that encode no word or end early");
    const bool head = rank % kBucketWords == 0;
    if (head) {
      if (entry->prefix != 0) {
        return refuse("a complete word at the start of a bucket",
                      Numbered("a shared prefix of length", entry->prefix));
      }
      if (entry->rest <= std::string_view(previous) && rank > 0) {
        return refuse("a word above the word before", Quoted(entry->rest));
      }
      bucket_offsets_.push_back(static_cast<uint32_t>(at));
    } else {
      if (entry->prefix > previous.size()) {
        return refuse("a shared prefix of at most " + BytesText(previous.size()),
                      std::to_string(entry->prefix));
      }
      // With the longest possible shared prefix, the word is above the word before exactly if its
      // first byte after the prefix is above the other's.
      if (entry->prefix < previous.size() &&
          static_cast<unsigned char>(entry->rest[0]) <=
              static_cast<unsigned char>(previous[entry->prefix])) {
        return refuse("a word above the word before, with the longest shared prefix",
                      Quoted(entry->rest));
      }
    }
    previous.resize(entry->prefix);
    previous += entry->rest;
    word_bytes_ += previous.size();
    at = entry->end;
  }
  if (at != stored_.words.size()) {
    return RefuseVocabulary(KINGLET_INVALID_MODEL, "words", BytesText(at),
                            BytesText(stored_.words.size()));
  }
  return {};
}

Status Vocabulary::ReadRanks() {
  const uint32_t size = stored_.size;
  const std::span<const std::byte> ranks = stored_.ranks;
  const int bits = RankBits(size);
  const uint64_t expected = PackedBytes(size, bits);
  if (ranks.size() != expected) {
    return RefuseVocabulary(KINGLET_INVALID_MODEL, "ranks", BytesText(expected),
                            BytesText(ranks.size()));
  }
  const uint64_t used = uint64_t{size} * static_cast<uint64_t>(bits);
  if (CountSetBits(ranks, used, 8 * ranks.size()) != 0) {
    return RefuseVocabulary(KINGLET_INVALID_MODEL, "ranks", "zeros after the last rank",
                            "set bits");
  }
  id_of_rank_.assign(size, kNone);
  for (uint32_t id = 0; id < size; ++id) {
    const uint32_t rank = RankOfId(id);
    if (rank >= size || id_of_rank_[rank] != kNone) {
      return RefuseVocabulary(KINGLET_INVALID_MODEL, Numbered("ranks, id", id),
                              "a rank below " + std::to_string(size) + " of its own",
                              std::to_string(rank));
    }
    id_of_rank_[rank] = id;
  }
  return {};
}

uint32_t Vocabulary::RankOfId(uint32_t id) const {
  const int bits = RankBits(stored_.size);
  return bits == 0 ? 0 : LoadField(stored_.ranks, bits, id);
}

Vocabulary::Reader::Reader(const Vocabulary& vocabulary, uint32_t rank)
    : vocabulary_(vocabulary), rank_(rank - rank % kBucketWords) {
  if (rank < vocabulary.size()) at_ = vocabulary.bucket_offsets_[rank / kBucketWords];
}

std::string_view Vocabulary::Reader::Next() {
  const Entry entry = CheckedEntry(vocabulary_.stored_.words, at_);
  word_.resize(entry.prefix);
  word_ += entry.rest;
  at_ = entry.end;
  ++rank_;
  return word_;
}

std::string Vocabulary::Word(uint32_t id) const {
  const uint32_t rank = RankOfId(id);
  Reader reader(*this, rank);
  while (reader.rank() < rank) reader.Next();
  return std::string(reader.Next());
}

uint32_t Vocabulary::RankOf(std::string_view text) const {
  // The first bucket whose first word is not below `text`: the word is in the bucket before.
  size_t low = 0, high = bucket_offsets_.size();
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (BucketHead(middle) < text) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == 0) return 0;
  const uint64_t end = std::min<uint64_t>(uint64_t{low} * kBucketWords, size());
  Reader reader(*this, static_cast<uint32_t>((low - 1) * kBucketWords));
  while (reader.rank() < end) {
    if (reader.Next() >= text) return reader.rank() - 1;
  }
  return static_cast<uint32_t>(end);
}

std::span<const uint32_t> Vocabulary::WithPrefix(std::string_view prefix) const {
  const uint32_t first = RankOf(prefix);
  // The least text that is above all texts with the prefix: the prefix with its last byte below 255
  // raised by 1, without the bytes after that byte.
  std::string above(prefix);
  while (!above.empty() && above.back() == '\xFF') above.pop_back();
  uint32_t last = size();
  if (!above.empty()) {
    ++above.back();
    last = RankOf(above);
  }
  return std::span(id_of_rank_).subspan(first, last - first);
}

std::string_view Vocabulary::BucketHead(size_t bucket) const {
  return CheckedEntry(stored_.words, bucket_offsets_[bucket]).rest;
}

std::optional<uint32_t> Vocabulary::Find(std::string_view word) const {
  // The last bucket whose first word is not above `word`.
  size_t low = 0, high = bucket_offsets_.size();
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (BucketHead(middle) <= word) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == 0) return std::nullopt;
  const size_t bucket = low - 1;
  const uint64_t begin = uint64_t{bucket} * kBucketWords;
  const uint64_t end = std::min<uint64_t>(begin + kBucketWords, size());
  size_t at = bucket_offsets_[bucket];
  // How many leading bytes of `word` the current entry shares with it.
  size_t shared = 0;
  for (uint64_t rank = begin; rank < end; ++rank) {
    const Entry entry = CheckedEntry(stored_.words, at);
    at = entry.end;
    // The entry before matched `shared` bytes and was below `word`. An entry that keeps more than
    // those bytes is still below `word`; an entry that keeps fewer is above `word`.
    if (entry.prefix > shared) continue;
    if (entry.prefix < shared) return std::nullopt;
    const std::string_view wanted = word.substr(shared);
    const auto differ =
        std::mismatch(entry.rest.begin(), entry.rest.end(), wanted.begin(), wanted.end());
    shared += static_cast<size_t>(differ.first - entry.rest.begin());
    const bool entry_ends = differ.first == entry.rest.end();
    const bool word_ends = differ.second == wanted.end();
    if (entry_ends && word_ends) return id_of_rank_[rank];
    if (word_ends) return std::nullopt;
    if (!entry_ends &&
        static_cast<unsigned char>(*differ.first) > static_cast<unsigned char>(*differ.second)) {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

}  // namespace kinglet

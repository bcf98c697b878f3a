// A back-off n-gram model: log10 p(word | the words before), as KenLM answers.
#ifndef KINGLET_RUNTIME_NGRAMS_NGRAM_MODEL_H_
#define KINGLET_RUNTIME_NGRAMS_NGRAM_MODEL_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "format/page_memory.h"
#include "kinglet/status.h"
#include "runtime/ngrams/ngram_layout.h"

namespace kinglet {

// The words before the next one, as far as the model distinguishes them: states are equal exactly
// if they have the same such words. A state is a value; the empty state has no word before.
struct NgramState {
  static constexpr uint32_t kAbsent = UINT32_MAX;
  // nodes[i]: the number of the n-gram of the last i + 1 words, or kAbsent; kAbsent from length on.
  std::array<uint32_t, kMaxNgramOrder - 1> nodes = Nowhere();
  uint32_t length = 0;

  bool operator==(const NgramState&) const = default;

 private:
  static constexpr std::array<uint32_t, kMaxNgramOrder - 1> Nowhere() {
    std::array<uint32_t, kMaxNgramOrder - 1> nodes{};
    nodes.fill(kAbsent);
    return nodes;
  }
};

struct NgramScore {
  double log10 = 0;     // of the probability, with the back-off weights that it took
  uint32_t length = 0;  // words of the longest n-gram that was found
};

struct NgramSentenceScore {
  double log10 = 0, unknown_log10 = 0;  // of all words, and of the unknown ones among them
  uint64_t words = 0, unknown = 0;      // </s> is one of the words
};

// Immutable; threads may share it.
class NgramModel {
 public:
  // Reads the file into memory, so that later changes of it have no effect, and checks its digest
  // and the meaning of every number, so that no query leaves the bytes. Errors: KINGLET_NOT_FOUND,
  // KINGLET_IO_ERROR, KINGLET_OUT_OF_MEMORY, KINGLET_CORRUPT, KINGLET_UNSUPPORTED_VERSION; the text
  // starts with the path.
  static Result<std::shared_ptr<const NgramModel>> Open(const std::string& path);
  static Result<std::shared_ptr<const NgramModel>> FromBytes(std::span<const std::byte> bytes);

  const NgramHeader& header() const { return layout_.header; }
  uint64_t file_size() const { return layout_.file_size; }
  const std::string& digest() const { return digest_; }  // 32 hexadecimal digits

  uint32_t unknown_word() const { return unknown_; }
  uint32_t end_word() const { return end_; }
  // unknown_word() if the model does not have the word.
  uint32_t IdOf(std::string_view word) const;
  std::string_view WordOf(uint32_t id) const;  // REQUIRES: id < header().counts[0]

  // The state after <s>.
  NgramState SentenceBegin() const;
  // The score of a word after `before`, and in `after` the state that follows; both may be one
  // object. REQUIRES: word < header().counts[0]; `before` is of this model.
  NgramScore Score(const NgramState& before, uint32_t word, NgramState& after) const;
  // out[word] = Score(before, word).log10 of every word. REQUIRES: `out` has header().counts[0]
  // elements; `before` is of this model.
  void ScoreAll(const NgramState& before, std::span<double> out) const;
  // Whether Score stays within the model's bytes after this state, which may be of another model.
  bool Accepts(const NgramState& state) const;
  // log10 p(words </s> | <s>) of the words that ASCII white space separates. `on_unknown`, if any,
  // gets each unknown word.
  NgramSentenceScore ScoreSentence(
      std::string_view text, const std::function<void(std::string_view)>& on_unknown = {}) const;

 private:
  NgramModel(NgramLayout layout, PageMemory memory);
  static Result<std::shared_ptr<const NgramModel>> Build(const std::string& origin,
                                                         NgramLayout layout, PageMemory memory);
  Status Check(const std::string& origin);
  Status CheckWords(const std::string& origin) const;
  Status CheckLevel(const std::string& origin, size_t index) const;

  std::optional<uint32_t> Find(std::string_view word) const;
  uint32_t WordEnd(uint64_t id) const;
  uint32_t FieldAt(const NgramLevel& level, uint64_t record, int offset, int bits) const;
  uint32_t WordField(const NgramLevel& level, uint64_t record) const;
  uint32_t ChildField(const NgramLevel& level, uint64_t record) const;
  float ValueOf(uint64_t codebook, uint32_t field) const;
  float Probability(const NgramLevel& level, uint64_t record) const;
  float Backoff(const NgramLevel& level, uint64_t record) const;
  // The child of n-gram `node` of `length` words by another word, or kAbsent.
  uint32_t Child(size_t length, uint32_t node, uint32_t word) const;
  // Whether n-grams or weights depend on the n-gram being before.
  bool Matters(size_t length, uint32_t node) const;

  NgramLayout layout_;
  PageMemory memory_;
  std::span<const std::byte> bytes_;
  std::string digest_;
  uint32_t unknown_ = 0, begin_ = 0, end_ = 0;
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_NGRAMS_NGRAM_MODEL_H_

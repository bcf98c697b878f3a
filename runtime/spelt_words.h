// The words that a model with a spelling (EmbeddingBin::spelling) reads by their bytes: those of
// its vocabulary, and any other, which gets a number above all ids when it is first spelt. Any
// thread may use an object.
#ifndef KINGLET_RUNTIME_SPELT_WORDS_H_
#define KINGLET_RUNTIME_SPELT_WORDS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "format/vocabulary.h"
#include "kernels/plan.h"
#include "kinglet/status.h"
#include "runtime/memory_budget.h"

namespace kinglet {

class SpeltWords {
 public:
  // The most words beyond the vocabulary. They are kept as long as the model is open, because
  // streams may read them again by their numbers.
  static constexpr uint32_t kMostWords = uint32_t{1} << 22;

  // nullptr if the plan's words have no spellings. `vocabulary` outlives the object. Errors:
  // KINGLET_INVALID_MODEL without a vocabulary or its unknown word, which is what the model
  // predicts in place of a word that it lacks. Throws std::bad_alloc.
  static Result<std::unique_ptr<SpeltWords>> Of(const Plan& plan, const Vocabulary* vocabulary,
                                                std::shared_ptr<MemoryBudget> budget);

  // The number of a word: its id, or one at or above the vocabulary's size, the same for equal
  // first `longest` bytes. Errors: KINGLET_INVALID_ARGUMENT for an empty word;
  // KINGLET_OUT_OF_MEMORY beyond kMostWords or the budget. Throws std::bad_alloc.
  Result<uint32_t> Number(std::string_view word);

  // What a model reads for a number: its bytes, at most `longest`, which live as long as the
  // object, and the token that takes its place where words are predicted or stored. nullopt for a
  // number that no word has.
  struct Word {
    std::string_view bytes;
    uint32_t token;
  };
  std::optional<Word> Find(uint32_t number) const;

  // By id: how many bytes of the word are read; 0 for a word of a table.
  std::vector<uint16_t> Lengths() const;
  // A bound of the memory that Of(plan, vocabulary) takes, and Lengths.
  static uint64_t BytesOf(const Plan& plan, const Vocabulary* vocabulary);

 private:
  SpeltWords(const Vocabulary& vocabulary, uint32_t first, uint32_t longest, uint32_t unknown,
             std::shared_ptr<MemoryBudget> budget);

  const Vocabulary& vocabulary_;
  const uint32_t first_, longest_, unknown_;
  std::string known_;                 // the bytes of the vocabulary's words from first_ on
  std::vector<uint64_t> known_ends_;  // in known_
  mutable std::shared_mutex mutex_;   // guards what follows
  std::deque<std::string> others_;
  std::unordered_map<std::string_view, uint32_t> numbers_;  // of others_
  MemoryClaim memory_;
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_SPELT_WORDS_H_

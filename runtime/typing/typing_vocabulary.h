// The words of a model that people type.
#ifndef KINGLET_RUNTIME_TYPING_TYPING_VOCABULARY_H_
#define KINGLET_RUNTIME_TYPING_TYPING_VOCABULARY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kinglet/status.h"
#include "runtime/model.h"
#include "runtime/typing/letter_model.h"
#include "runtime/typing/piece_vocabulary.h"
#include "runtime/typing/word_trie.h"

namespace kinglet::typing {

// A word is a token with a letter or a digit that is no mark of the training text: not the unknown
// token, not the end of a line, nothing in angle brackets. Immutable; may be shared by threads.
class TypingVocabulary {
 public:
  // Claims its memory from the model's limit. KINGLET_UNSUPPORTED for a model of ids only, with an
  // encoder, or that reads backward; KINGLET_OUT_OF_MEMORY. Throws std::bad_alloc.
  static Result<std::shared_ptr<const TypingVocabulary>> Of(std::shared_ptr<const Model> model);

  const Model& model() const { return *model_; }
  // The pieces of which words are made; null if tokens are words. With pieces there are no listed
  // words.
  const std::shared_ptr<const PieceVocabulary>& pieces() const { return pieces_; }
  const WordTrie& trie() const { return trie_; }  // its values are ids
  // Whether the entry's word joins the word before ('t), rather than being a word of its own.
  bool Joins(uint32_t entry) const { return !joins_.empty() && joins_[entry]; }
  // Entries whose words join, and a tree of these words.
  const std::vector<uint32_t>& joining() const { return joining_; }
  const WordTrie& joining_trie() const { return joining_trie_; }
  // The text of a token as people write it, without a space before.
  std::string Text(uint32_t id) const;
  std::optional<uint32_t> unknown() const { return unknown_; }

  // Whether words in lower case include this one.
  bool IsListed(LettersView lower) const;
  // The entry of a word of its own with exactly this text.
  std::optional<uint32_t> EntryOf(const std::string& text) const;

  // The natural logarithm of the share that a word which the vocabulary lacks has of the
  // probability of all such words, by its letters. Shares of all of them add up to 1.
  double LogShareOfUnknown(LettersView word) const {
    return letters_.LogProbability(word) - log_unlisted_;
  }

 private:
  TypingVocabulary() = default;

  std::shared_ptr<const Model> model_;
  MemoryClaim memory_;
  std::shared_ptr<const PieceVocabulary> pieces_;
  WordTrie trie_;
  std::vector<bool> joins_;  // by entry; empty if no word joins
  std::vector<uint32_t> joining_;
  WordTrie joining_trie_;
  LetterModel letters_;
  double log_unlisted_ = 0;  // of the probability that the letters are no word of the list
  std::optional<uint32_t> unknown_;
};

}  // namespace kinglet::typing

#endif  // KINGLET_RUNTIME_TYPING_TYPING_VOCABULARY_H_

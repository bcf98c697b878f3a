// Tokenizes text for a model, as ids of the model's vocabulary.
#ifndef KINGLET_RUNTIME_TEXT_MODEL_TEXT_H_
#define KINGLET_RUNTIME_TEXT_MODEL_TEXT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/model_file.h"
#include "format/text_tables.h"
#include "format/vocabulary.h"
#include "kinglet/status.h"
#include "runtime/text/tokenizer.h"

namespace kinglet {

// A model's tokenizer together with its vocabulary. Immutable; may be shared by threads.
class ModelText {
 public:
  // REQUIRES: `vocabulary` outlives the object. Errors: those of Tokenizer::Create.
  static Result<std::shared_ptr<const ModelText>> Create(const TextTables& tables,
                                                         const Vocabulary& vocabulary);

  // The text of a model file. If the file contains no tokenizer, words are split at white space.
  // Null for a file without words, and for a masked model without a tokenizer, whose texts would
  // lack the words that a tokenizer adds at both ends. Texts are tokenized within `budget`.
  // REQUIRES: `file` outlives the object.
  static Result<std::shared_ptr<const ModelText>> Of(
      const ModelFile& file, std::shared_ptr<MemoryBudget> budget = nullptr);
  // A bound of the memory that Of(file) takes, of which most stays in use; 0 if it returns null.
  static uint64_t BytesOf(const ModelFile& file);
  // The text of any vocabulary of a file, whose tables may be null.
  static Result<std::shared_ptr<const ModelText>> Of(const TextTables* tables,
                                                     const Vocabulary& vocabulary);

  // The tokens of a text of any number of lines, with ids of the vocabulary and ranges of `text`,
  // in the order in which the model reads them (reads_backward). Bytes that are no text
  // (plain_text.h) are ignored. A piece that the vocabulary lacks becomes the unknown word: the
  // SentencePiece model's unknown piece, or <unk>. Errors: those of Tokenizer::Encode, and
  // KINGLET_UNKNOWN_WORD for a piece that the vocabulary lacks if it also lacks an unknown word.
  Result<TokenizedText> Encode(std::string_view text) const;
  // The tokens of a part of a line, in the line's order (Tokenizer::EncodePart). REQUIRES: marks
  // where the line begins and carriage returns at its end are removed.
  Result<TokenizedText> EncodePart(std::string_view text, TextPart& part) const;

  // Whether the file contains a tokenizer.
  bool is_stated() const { return is_stated_; }

  // Whether the model reads a text from its last token to its first.
  bool reads_backward() const { return reads_backward_; }

  std::optional<uint32_t> unknown_id() const { return unknown_; }
  // Whether tokens are parts of words, not words.
  bool splits_words() const { return tokenizer_->splits_words(); }
  // The word of a line's end, if it follows from the tokenizer.
  std::optional<uint32_t> newline_id() const {
    const auto piece = tokenizer_->newline_piece();
    return piece ? word_of_piece_[*piece] : std::nullopt;
  }
  // Whether a line may be split at any space into lines that give the same tokens.
  bool is_between_spaces() const { return tokenizer_->is_between_spaces(); }
  const Vocabulary& vocabulary() const { return *vocabulary_; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }

  // Adds a word of the vocabulary to a TextDecoder of the tokenizer, and returns the text that Add
  // returns. Words that are no pieces, such as marks of sentences, print nothing. REQUIRES: id <
  // vocabulary().size().
  std::string Decode(uint32_t id, TextDecoder& decoder) const;
  // The text that a word of the vocabulary adds (Tokenizer::Spell); words that are no pieces spell
  // nothing. REQUIRES: id < vocabulary().size().
  Spelling Spell(uint32_t id) const;

 private:
  ModelText() = default;
  static Result<std::shared_ptr<ModelText>> Make(const TextTables* tables,
                                                 const Vocabulary& vocabulary);
  Result<TokenizedText> EncodeForward(std::string_view text) const;

  bool is_stated_ = true, reads_backward_ = false;
  std::shared_ptr<const Tokenizer> tokenizer_;
  const Vocabulary* vocabulary_ = nullptr;
  std::vector<std::optional<uint32_t>> word_of_piece_;  // empty if pieces have no ids
  std::vector<std::optional<uint32_t>> piece_of_word_;
  std::optional<uint32_t> unknown_;
  std::shared_ptr<MemoryBudget> budget_;  // null without a limit
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_TEXT_MODEL_TEXT_H_

// A model's text: what its tokenizer cuts, as ids of its vocabulary.
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

// Immutable; may be shared by threads.
class ModelText {
 public:
  // REQUIRES: `vocabulary` outlives this. Errors: those of Tokenizer::Create.
  static Result<std::shared_ptr<const ModelText>> Create(const TextTables& tables,
                                                         const Vocabulary& vocabulary);

  // The text of a model file. Where it does not say how text is cut, words stand between white
  // space. Null for a file without words, and for a masked model that does not say it: its texts
  // begin and end with words that a tokenizer puts there. Texts are cut within `budget`. REQUIRES:
  // `file` outlives this.
  static Result<std::shared_ptr<const ModelText>> Of(
      const ModelFile& file, std::shared_ptr<MemoryBudget> budget = nullptr);
  // At most what making it takes; most of it stays. 0 where there is none.
  static uint64_t BytesOf(const ModelFile& file);
  // By the file's tables, which may be null, for any of its vocabularies.
  static Result<std::shared_ptr<const ModelText>> Of(const TextTables* tables,
                                                     const Vocabulary& vocabulary);

  // Tokens of the text's lines, without what is no text of them (plain_text.h), whose ids are the
  // vocabulary's and whose ranges are those of `text`. A piece that the vocabulary has not becomes
  // its unknown word: the SentencePiece model's unknown piece, or <unk>. Errors: those of
  // Tokenizer::Encode, and KINGLET_UNKNOWN_WORD for such a piece where the vocabulary has no
  // unknown word.
  Result<TokenizedText> Encode(std::string_view text) const;

  // Whether the file says how text is cut.
  bool is_stated() const { return is_stated_; }

  std::optional<uint32_t> unknown_id() const { return unknown_; }
  // Whether tokens are parts of words, not words.
  bool splits_words() const { return tokenizer_->splits_words(); }
  // Whether a line may be cut at any space into lines that are cut alike.
  bool is_between_spaces() const { return tokenizer_->is_between_spaces(); }
  const Vocabulary& vocabulary() const { return *vocabulary_; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }

  // How a word of the vocabulary is given to a TextDecoder of the tokenizer. Words that are no
  // pieces, such as marks of sentences, print nothing. REQUIRES: id < vocabulary().size().
  std::string Decode(uint32_t id, TextDecoder& decoder) const;
  // What a word of the vocabulary adds to a text (Tokenizer::Spell); words that are no pieces spell
  // nothing. REQUIRES: id < vocabulary().size().
  Spelling Spell(uint32_t id) const;

 private:
  ModelText() = default;
  static Result<std::shared_ptr<ModelText>> Make(const TextTables* tables,
                                                 const Vocabulary& vocabulary);
  Result<TokenizedText> EncodePlain(std::string_view text) const;

  bool is_stated_ = true;
  std::shared_ptr<const Tokenizer> tokenizer_;
  const Vocabulary* vocabulary_ = nullptr;
  std::vector<std::optional<uint32_t>> word_of_piece_;  // empty: pieces have no ids
  std::vector<std::optional<uint32_t>> piece_of_word_;
  std::optional<uint32_t> unknown_;
  std::shared_ptr<MemoryBudget> budget_;  // null: no limit
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_TEXT_MODEL_TEXT_H_

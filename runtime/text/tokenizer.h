// How a model cuts text, whatever the way: text to tokens with byte ranges, and tokens to text.
#ifndef KINGLET_RUNTIME_TEXT_TOKENIZER_H_
#define KINGLET_RUNTIME_TEXT_TOKENIZER_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "format/text_tables.h"
#include "kinglet/status.h"
#include "runtime/text/marks.h"
#include "runtime/text/sentence_pieces.h"
#include "runtime/text/spelling.h"
#include "runtime/text/tokenized_text.h"
#include "runtime/text/word_merges.h"
#include "runtime/text/word_pieces.h"
#include "runtime/text/word_rules.h"

namespace kinglet {

// At most what cutting takes for each byte of a text, its normalised form and tokens included.
inline constexpr uint64_t kTokenizerBytes = 192;

// Immutable; may be shared by threads.
class Tokenizer {
 public:
  // `marks`: of the vocabulary that the tokens are looked up in; those among the tables' pieces are
  // known. Errors: those of CheckTextTables, KINGLET_INVALID_ARGUMENT.
  static Result<std::shared_ptr<const Tokenizer>> Create(TextTables tables, Marks marks = {});
  // At most the memory that one of these tables takes while it is made; most of it stays.
  static uint64_t BytesOf(const TextTables& tables);

  // Takes any bytes. Ranges are those of `text`, also where it was lower-cased first. Marks keep
  // their case, and word rules do not cut them. `budget`, if not null: what cutting takes is
  // claimed from it first, kTokenizerBytes for each byte of the text as it is cut, and the answer holds
  // the claim.
  // Errors: KINGLET_INVALID_ARGUMENT for a text that is too long, or that the normaliser's rules
  // make too long; KINGLET_OUT_OF_MEMORY.
  Result<TokenizedText> Encode(std::string_view text,
                               const std::shared_ptr<MemoryBudget>& budget = nullptr) const;

  // The number of pieces of such tables, whose ids count from 0; 0 where pieces have none.
  static uint32_t SizeOf(const TextTables& tables);
  uint32_t size() const;
  // REQUIRES: id < size().
  std::string_view Piece(uint32_t id) const;
  // The piece that stands for whatever is none; none where pieces have no ids.
  std::optional<uint32_t> unknown_piece() const;
  // Whether tokens may be parts of words: pieces or characters.
  bool splits_words() const {
    return sentence_pieces_ || word_merges_ || word_pieces_ ||
           rule_.rule == WordRule::Rule::kCharacters;
  }
  // Whether tokens are what stands between white space, and nothing else matters.
  bool is_between_spaces() const {
    return !splits_words() && rule_.rule == WordRule::Rule::kSpaces;
  }
  // Whether a piece is written without a space behind the one before, although a text that was cut
  // has one there: the 't of can't.
  bool WritesTogether(std::string_view piece) const;
  // SentencePieces::drops_first_space and drops_first_spaces; false for other tokenizers.
  bool drops_first_space() const {
    return sentence_pieces_ && sentence_pieces_->drops_first_space();
  }
  bool drops_first_spaces() const {
    return sentence_pieces_ && sentence_pieces_->drops_first_spaces();
  }
  // What a piece adds to a text in which others stand before it. Spaces between words are the
  // pieces' own where they are marked in pieces (SentencePiece); elsewhere they come from the joins
  // of a piece and the one before. The second form is for a token by its spelling.
  Spelling Spell(uint32_t id) const;
  Spelling Spell(std::string_view piece) const;

 private:
  friend class TextDecoder;
  Tokenizer(TextTables tables, Marks marks);
  Result<TokenizedText> EncodePlain(std::string_view text,
                                    const std::shared_ptr<MemoryBudget>& budget) const;

  bool lower_case_;
  uint64_t queue_bytes_ = 0;  // of what merges wait in where a text is long
  std::unique_ptr<const SentencePieces> sentence_pieces_;
  std::unique_ptr<const WordMerges> word_merges_;
  std::unique_ptr<const WordPieces> word_pieces_;
  WordRule rule_;
  Marks marks_;
};

// Joins tokens to text, one after the other: what Add returns may be printed at once, and never
// ends inside a character.
class TextDecoder {
 public:
  // REQUIRES: `tokenizer` outlives this.
  explicit TextDecoder(const Tokenizer& tokenizer);

  // REQUIRES: id < tokenizer.size().
  std::string Add(uint32_t id);
  // A token by its spelling; an unknown one is printed as it is.
  std::string Add(std::string_view piece);
  // What was kept back; the decoder then starts again.
  std::string Finish();

 private:
  const Tokenizer* tokenizer_;
  std::optional<SentenceDecoder> sentence_;
  bool joined_ = true;  // the next word follows without a space
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_TEXT_TOKENIZER_H_

// Tokenizers of every kind: text to tokens with byte ranges, and tokens to text.
#ifndef KINGLET_RUNTIME_TEXT_TOKENIZER_H_
#define KINGLET_RUNTIME_TEXT_TOKENIZER_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "format/text_tables.h"
#include "kinglet/status.h"
#include "runtime/text/byte_pieces.h"
#include "runtime/text/marks.h"
#include "runtime/text/sentence_pieces.h"
#include "runtime/text/spelling.h"
#include "runtime/text/text_part.h"
#include "runtime/text/tokenized_text.h"
#include "runtime/text/word_merges.h"
#include "runtime/text/word_pieces.h"
#include "runtime/text/word_rules.h"

namespace kinglet {

// The most bytes that tokenizing takes for each byte of a text, its normalised form and tokens
// included.
inline constexpr uint64_t kTokenizerBytes = 192;

// Immutable; may be shared by threads.
class Tokenizer {
 public:
  // `marks` are those of the vocabulary in which tokens are looked up; marks among the tables'
  // pieces are added. Errors: those of CheckTextTables, KINGLET_INVALID_ARGUMENT.
  static Result<std::shared_ptr<const Tokenizer>> Create(TextTables tables, Marks marks = {});
  // A bound of the memory that creating a tokenizer of these tables takes, of which most stays in
  // use.
  static uint64_t BytesOf(const TextTables& tables);

  // Tokenizes any bytes. Ranges are those of `text`, even if the text was lower-cased first. Marks
  // keep their case, and word rules do not split them. If `budget` is not null, kTokenizerBytes for
  // each byte of the normalised text are claimed from it first, and the answer owns the claim.
  // Errors: KINGLET_INVALID_ARGUMENT for a text that is too long, or that the normaliser's rules
  // make too long; KINGLET_OUT_OF_MEMORY.
  Result<TokenizedText> Encode(std::string_view text,
                               const std::shared_ptr<MemoryBudget>& budget = nullptr) const;
  // The tokens of a part of a text, split at a place that TextSplits names. Ranges are the part's.
  Result<TokenizedText> EncodePart(std::string_view text,
                                   const std::shared_ptr<MemoryBudget>& budget,
                                   TextPart& part) const;
  // Whether tokens depend on the whole line, whose parts ReadAhead then has to read first.
  bool reads_ahead() const { return !splits_words() && rule_.rule == WordRule::Rule::kWikiText; }
  // Adds the next part of a line. REQUIRES: reads_ahead().
  void ReadAhead(std::string_view text, WikiTextLine& line) const;

  // The number of pieces of a tokenizer of these tables, whose ids count from 0; 0 if pieces have
  // no ids.
  static uint32_t SizeOf(const TextTables& tables);
  uint32_t size() const;
  // REQUIRES: id < size().
  std::string_view Piece(uint32_t id) const;
  // The piece that stands for text which no piece matches. Returns nullopt if pieces have no ids.
  std::optional<uint32_t> unknown_piece() const;
  // Whether tokens may be parts of words: pieces or characters.
  bool splits_words() const {
    return sentence_pieces_ || word_merges_ || word_pieces_ || byte_pieces_ ||
           rule_.rule == WordRule::Rule::kCharacters;
  }
  // Whether every token is a complete text between white space.
  bool is_between_spaces() const {
    return !splits_words() && rule_.rule == WordRule::Rule::kSpaces;
  }
  // The piece of a line's end, if the tokenizer has one whatever its vocabulary.
  std::optional<uint32_t> newline_piece() const {
    return byte_pieces_ ? std::optional(byte_pieces_->PieceOfByte('\n')) : std::nullopt;
  }
  // Whether a piece is written without a space after the piece before, although a tokenized text
  // has a space there: the 't of can't.
  bool WritesTogether(std::string_view piece) const;
  // SentencePieces::drops_first_space and drops_first_spaces; false for other tokenizers.
  bool drops_first_space() const {
    return sentence_pieces_ && sentence_pieces_->drops_first_space();
  }
  bool drops_first_spaces() const {
    return sentence_pieces_ && sentence_pieces_->drops_first_spaces();
  }
  // The text that a piece adds after other pieces. If pieces mark spaces (SentencePiece), spaces
  // between words are parts of pieces; otherwise they follow from the joins of a piece and the
  // piece before. REQUIRES: id < size().
  Spelling Spell(uint32_t id) const;
  // The text that a token of this spelling adds after other tokens.
  Spelling Spell(std::string_view piece) const;

 private:
  friend class TextDecoder;
  friend class TextSplits;
  Tokenizer(TextTables tables, Marks marks);
  Result<TokenizedText> EncodePlain(std::string_view text,
                                    const std::shared_ptr<MemoryBudget>& budget,
                                    TextPart& part) const;

  bool lower_case_;
  uint64_t queue_bytes_ = 0;  // bytes of the merge queue of a long text
  std::unique_ptr<const SentencePieces> sentence_pieces_;
  std::unique_ptr<const WordMerges> word_merges_;
  std::unique_ptr<const WordPieces> word_pieces_;
  std::unique_ptr<const BytePieces> byte_pieces_;
  WordRule rule_;
  Marks marks_;
};

// Joins tokens to text, one after the other. Text that Add has returned may be printed at once, and
// never ends inside a character.
class TextDecoder {
 public:
  // REQUIRES: `tokenizer` outlives the decoder.
  explicit TextDecoder(const Tokenizer& tokenizer);

  // Adds a piece. REQUIRES: id < tokenizer.size().
  std::string Add(uint32_t id);
  // Adds a token by its spelling; an unknown token is printed as it is spelled.
  std::string Add(std::string_view piece);
  // Returns the text that was kept back; the decoder then starts again.
  std::string Finish();

 private:
  const Tokenizer* tokenizer_;
  std::optional<SentenceDecoder> sentence_;
  std::string bytes_;   // of byte-level pieces: the beginning of a character
  bool joined_ = true;  // the next word follows without a space
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_TEXT_TOKENIZER_H_

// Gives a text to the one who cuts it.
#include "runtime/text/tokenizer.h"

#include <utility>

#include "format/overloaded.h"
#include "runtime/text/lower_case.h"

namespace kinglet {

Tokenizer::Tokenizer(TextTables tables, Marks marks)
    : lower_case_(tables.lower_case), marks_(std::move(marks)) {
  std::visit(Overloaded{[this](SentencePieceTables& pieces) {
                          sentence_pieces_ = std::make_unique<SentencePieces>(std::move(pieces));
                        },
                        [this](MergeTables& merges) {
                          word_merges_ = std::make_unique<WordMerges>(std::move(merges));
                        },
                        [this](WordPieceTables& pieces) {
                          word_pieces_ = std::make_unique<WordPieces>(std::move(pieces));
                        },
                        [this](WordRule& rule) { rule_ = rule; }},
             tables.cutting);
  for (uint32_t id = 0; id < size(); ++id) marks_.Add(Piece(id));
}

Result<std::shared_ptr<const Tokenizer>> Tokenizer::Create(TextTables tables, Marks marks) {
  KINGLET_RETURN_IF_ERROR(CheckTextTables(KINGLET_INVALID_ARGUMENT, tables));
  return std::shared_ptr<const Tokenizer>(new Tokenizer(std::move(tables), std::move(marks)));
}

Result<Cut> Tokenizer::EncodePlain(std::string_view text) const {
  if (sentence_pieces_) return sentence_pieces_->Encode(text);
  if (word_merges_) return word_merges_->Encode(text);
  if (word_pieces_) return word_pieces_->Encode(text);
  return CutByRule(rule_.rule, text, marks_);
}

Result<Cut> Tokenizer::Encode(std::string_view text) const {
  if (!lower_case_) return EncodePlain(text);
  if (text.size() >= kMaxTextBytes) return RefuseLongText(text.size());
  const NormalisedText lower = LowerCase(text, marks_);
  KINGLET_ASSIGN_OR_RETURN(Cut cut, EncodePlain(lower.text));
  for (Cut::Token& token : cut.tokens) {
    token.begin = lower.origins[token.begin];
    token.end = lower.origins[token.end];
  }
  return cut;
}

uint32_t Tokenizer::size() const {
  if (sentence_pieces_) return static_cast<uint32_t>(sentence_pieces_->tables().pieces.size());
  return word_pieces_ ? static_cast<uint32_t>(word_pieces_->tables().pieces.size()) : 0;
}

std::string_view Tokenizer::Piece(uint32_t id) const {
  if (sentence_pieces_) return sentence_pieces_->tables().pieces[id].text;
  return word_pieces_->tables().pieces[id];
}

std::optional<uint32_t> Tokenizer::unknown_piece() const {
  if (sentence_pieces_) return sentence_pieces_->unknown();
  return word_pieces_ ? std::optional(word_pieces_->unknown()) : std::nullopt;
}

bool Tokenizer::WritesTogether(std::string_view piece) const {
  const bool wikitext = !sentence_pieces_ && !word_merges_ && !word_pieces_ &&
                        rule_.rule == WordRule::Rule::kWikiText;
  return wikitext && IsCutFromWord(piece);
}

Spelling Tokenizer::Spell(uint32_t id) const {
  return sentence_pieces_ ? sentence_pieces_->Spell(id) : Spell(Piece(id));
}

Spelling Tokenizer::Spell(std::string_view piece) const {
  if (sentence_pieces_) return sentence_pieces_->Spell(sentence_pieces_->IdOf(piece));
  if (word_merges_) {
    const bool goes_on = piece.ends_with(kJoinMark);
    if (goes_on) piece.remove_suffix(kJoinMark.size());
    return {std::string(piece), false, goes_on};
  }
  if (word_pieces_) {
    if (piece == "[CLS]" || piece == "[SEP]" || piece == "[PAD]") return {"", true, true};
    const bool inside = piece.starts_with(kContinues) && piece.size() > kContinues.size();
    if (inside) piece.remove_prefix(kContinues.size());
    return {std::string(piece), inside, false};
  }
  switch (rule_.rule) {
    case WordRule::Rule::kWikiText:
      if (piece == "@-@" || piece == "@,@" || piece == "@.@") {
        return {std::string(piece.substr(1, 1)), true, true};
      }
      break;
    case WordRule::Rule::kCharacters:
      return {std::string(piece), true, true};
    case WordRule::Rule::kSpaces:
      break;
  }
  return {std::string(piece), false, false};
}

TextDecoder::TextDecoder(const Tokenizer& tokenizer) : tokenizer_(&tokenizer) {
  if (tokenizer.sentence_pieces_) sentence_.emplace(*tokenizer.sentence_pieces_);
}

std::string TextDecoder::Add(uint32_t id) {
  return sentence_ ? sentence_->Add(id) : Add(tokenizer_->Piece(id));
}

std::string TextDecoder::Add(std::string_view piece) {
  if (sentence_) return sentence_->Add(tokenizer_->sentence_pieces_->IdOf(piece), piece);
  const Spelling spelling = tokenizer_->Spell(piece);
  // What spells nothing and joins both sides leaves the text as it is.
  if (spelling.text.empty() && spelling.joins_before) return {};
  const bool spaced = !spelling.joins_before && !joined_;
  joined_ = spelling.joins_after;
  return (spaced ? " " : "") + spelling.text;
}

std::string TextDecoder::Finish() {
  std::string out = sentence_ ? sentence_->Finish() : std::string();
  *this = TextDecoder(*tokenizer_);
  return out;
}

}  // namespace kinglet

// The words of pieces are looked up when the model is opened, those of other tokens in each text.
#include "runtime/text/model_text.h"

#include <algorithm>
#include <utility>

#include "format/message_text.h"
#include "runtime/text/plain_text.h"

namespace kinglet {
namespace {

// The tokenizer of a file that contains none.
constexpr WordRule kUnstated{WordRule::Rule::kSpaces};

// Calls visit(word) for the words that may be marks.
template <class Visit>
void ForEachBracketed(const Vocabulary& vocabulary, const Visit& visit) {
  for (const char* const bracket : {"<", "["}) {
    vocabulary.ForEachWithPrefix(bracket, [&](uint32_t, std::string_view word) { visit(word); });
  }
}

bool HasText(const ModelFile& file) {
  return file.vocabulary() != nullptr &&
         (file.text_tables() != nullptr || !IsMaskedModel(file.description()));
}

}  // namespace

Result<std::shared_ptr<ModelText>> ModelText::Make(const TextTables* tables,
                                                   const Vocabulary& vocabulary) {
  std::shared_ptr<ModelText> text(new ModelText);
  text->is_stated_ = tables != nullptr;
  text->reads_backward_ = tables != nullptr && tables->reads_backward;
  Marks marks;
  ForEachBracketed(vocabulary, [&](std::string_view word) { marks.Add(word); });
  KINGLET_ASSIGN_OR_RETURN(
      text->tokenizer_,
      Tokenizer::Create(tables != nullptr ? *tables : TextTables{false, kUnstated},
                        std::move(marks)));
  text->vocabulary_ = &vocabulary;
  const Tokenizer& tokenizer = *text->tokenizer_;
  if (tokenizer.size() > 0) text->piece_of_word_.resize(vocabulary.size());
  text->word_of_piece_.reserve(tokenizer.size());
  for (uint32_t piece = 0; piece < tokenizer.size(); ++piece) {
    const std::optional<uint32_t> word = vocabulary.Find(tokenizer.Piece(piece));
    text->word_of_piece_.push_back(word);
    if (word) text->piece_of_word_[*word] = piece;
  }
  if (const auto piece = tokenizer.unknown_piece()) text->unknown_ = text->word_of_piece_[*piece];
  if (!text->unknown_) text->unknown_ = vocabulary.Find("<unk>");
  return text;
}

Result<std::shared_ptr<const ModelText>> ModelText::Create(const TextTables& tables,
                                                           const Vocabulary& vocabulary) {
  return Of(&tables, vocabulary);
}

Result<std::shared_ptr<const ModelText>> ModelText::Of(const TextTables* tables,
                                                       const Vocabulary& vocabulary) {
  KINGLET_ASSIGN_OR_RETURN(auto text, Make(tables, vocabulary));
  return std::shared_ptr<const ModelText>(std::move(text));
}

Result<std::shared_ptr<const ModelText>> ModelText::Of(const ModelFile& file,
                                                       std::shared_ptr<MemoryBudget> budget) {
  if (!HasText(file)) return std::shared_ptr<const ModelText>();
  KINGLET_ASSIGN_OR_RETURN(auto text, Make(file.text_tables(), *file.vocabulary()));
  text->budget_ = std::move(budget);
  return std::shared_ptr<const ModelText>(std::move(text));
}

uint64_t ModelText::BytesOf(const ModelFile& file) {
  if (!HasText(file)) return 0;
  uint64_t marks = 0;
  ForEachBracketed(*file.vocabulary(),
                   [&](std::string_view word) { marks += Marks::kEntryBytes + word.size(); });
  if (file.text_tables() == nullptr) {
    return Tokenizer::BytesOf({false, kUnstated}) + marks + sizeof(ModelText);
  }
  // Each piece's word, and each word's piece.
  const TextTables& tables = *file.text_tables();
  return Tokenizer::BytesOf(tables) + marks + sizeof(ModelText) +
         (Tokenizer::SizeOf(tables) + file.vocabulary()->size()) * sizeof(std::optional<uint32_t>);
}

Result<TokenizedText> ModelText::Encode(std::string_view text) const {
  Result<TokenizedText> tokenized = EncodeForward(text);
  if (reads_backward_ && tokenized.ok()) {
    std::reverse(tokenized->tokens.begin(), tokenized->tokens.end());
  }
  return tokenized;
}

Result<TokenizedText> ModelText::EncodeForward(std::string_view text) const {
  const std::string_view line = PlainLine(text);
  TextPart whole;
  if (line.find('\n') == line.npos) {
    KINGLET_ASSIGN_OR_RETURN(TokenizedText tokenized, EncodePart(line, whole));
    const auto before = static_cast<uint32_t>(line.data() - text.data());
    for (TokenizedText::Token& token : tokenized.tokens) {
      token.begin += before;
      token.end += before;
    }
    return tokenized;
  }
  const PlainText plain(text);
  KINGLET_ASSIGN_OR_RETURN(TokenizedText tokenized, EncodePart(plain.text(), whole));
  for (TokenizedText::Token& token : tokenized.tokens) {
    const bool empty = token.begin == token.end;
    token.begin = static_cast<uint32_t>(plain.Begin(token.begin));
    token.end = empty ? token.begin : static_cast<uint32_t>(plain.End(token.end));
  }
  return tokenized;
}

Result<TokenizedText> ModelText::EncodePart(std::string_view text, TextPart& part) const {
  KINGLET_ASSIGN_OR_RETURN(TokenizedText tokenized, tokenizer_->EncodePart(text, budget_, part));
  for (TokenizedText::Token& token : tokenized.tokens) {
    const std::optional<uint32_t> word = token.id == kNoPieceId
                                             ? vocabulary_->Find(tokenized.Piece(token))
                                             : word_of_piece_[token.id];
    if (!word && !unknown_) {
      return Status::Refusal(KINGLET_UNKNOWN_WORD, "text", Numbered("byte", token.begin),
                             "a word of the vocabulary, which has no <unk>",
                             Quoted(tokenized.Piece(token)));
    }
    token.id = word ? *word : *unknown_;
  }
  return tokenized;
}

std::string ModelText::Decode(uint32_t id, TextDecoder& decoder) const {
  if (piece_of_word_.empty()) return decoder.Add(vocabulary_->Word(id));
  const std::optional<uint32_t> piece = piece_of_word_[id];
  return piece ? decoder.Add(*piece) : std::string();
}

Spelling ModelText::Spell(uint32_t id) const {
  if (piece_of_word_.empty()) return tokenizer_->Spell(vocabulary_->Word(id));
  const std::optional<uint32_t> piece = piece_of_word_[id];
  return piece ? tokenizer_->Spell(*piece) : Spelling{"", true, true};
}

}  // namespace kinglet

// Passes a text to the tokenizer of its kind.
#include "runtime/text/tokenizer.h"

#include <utility>

#include "format/overloaded.h"
#include "runtime/text/lower_case.h"
#include "runtime/text/merge_queue.h"

namespace kinglet {
namespace {

// The most bytes of an entry of a hash table of strings, and of one of views of texts, the table's
// own part included.
constexpr uint64_t kStringEntryBytes = 96, kViewEntryBytes = 64;

// The number of nodes is exact, because it follows from the sorted keys.
uint64_t BytesOfRules(const NormaliserTables& tables) {
  std::vector<std::string_view> keys;
  keys.reserve(tables.rules.size());
  for (const auto& rule : tables.rules) keys.emplace_back(rule.from);
  return PrefixTrie::BytesOf(std::move(keys));
}

uint64_t IndexBytes(const SentencePieceTables& tables) {
  std::vector<std::string_view> texts, kept;
  texts.reserve(tables.pieces.size());
  for (const auto& piece : tables.pieces) {
    texts.emplace_back(piece.text);
    if (piece.type == SentencePieceTables::Type::kUserDefined) kept.emplace_back(piece.text);
  }
  const bool unigram = tables.algorithm == SentencePieceTables::Algorithm::kUnigram;
  const uint64_t by_piece =
      2 * kViewEntryBytes + 4 * sizeof(float) + sizeof(std::pair<std::string_view, uint32_t>);
  return BytesOfRules(tables.normaliser) + BytesOfRules(tables.denormaliser) +
         4 * PrefixTrie::BytesOf(std::move(kept)) + texts.size() * by_piece +
         (unigram ? PrefixTrie::BytesOf(std::move(texts)) : 0);
}

// Each merge may add three symbols: its two parts, and the symbol that it makes.
uint64_t IndexBytes(const MergeTables& tables) {
  uint64_t bytes =
      tables.merges.size() * 4 * kStringEntryBytes + tables.known.size() * kStringEntryBytes;
  for (const auto& [left, right] : tables.merges) bytes += 2 * (left.size() + right.size()) + 64;
  return bytes;
}

uint64_t IndexBytes(const WordPieceTables& tables) {
  const std::vector<std::string_view> texts(tables.pieces.begin(), tables.pieces.end());
  // Twice, because pieces inside words are stored again without their mark.
  return 2 * PrefixTrie::BytesOf(texts);
}

uint64_t IndexBytes(const BytePieceTables& tables) {
  std::vector<std::string_view> marks;
  for (const uint32_t id : tables.marks) marks.emplace_back(tables.pieces[id]);
  return (tables.pieces.size() + tables.merges.size()) * kViewEntryBytes +
         PrefixTrie::BytesOf(std::move(marks));
}

uint64_t IndexBytes(const WordRule&) { return 0; }

}  // namespace

uint64_t Tokenizer::BytesOf(const TextTables& tables) {
  constexpr uint64_t kOwn = 4096;
  return kOwn + HeldBytes(tables) +
         std::visit([](const auto& method) { return IndexBytes(method); }, tables.method);
}

Tokenizer::Tokenizer(TextTables tables, Marks marks)
    : lower_case_(tables.lower_case), marks_(std::move(marks)) {
  if (const auto* merges = std::get_if<MergeTables>(&tables.method)) {
    queue_bytes_ = MergeQueue::BytesOf(merges->merges.size());
  } else if (const auto* pieces = std::get_if<SentencePieceTables>(&tables.method)) {
    queue_bytes_ = MergeQueue::BytesOf(pieces->pieces.size());
  } else if (const auto* bytes = std::get_if<BytePieceTables>(&tables.method)) {
    queue_bytes_ = MergeQueue::BytesOf(bytes->merges.size());
  }
  std::visit(Overloaded{[this](SentencePieceTables& pieces) {
                          sentence_pieces_ = std::make_unique<SentencePieces>(std::move(pieces));
                        },
                        [this](MergeTables& merges) {
                          word_merges_ = std::make_unique<WordMerges>(std::move(merges));
                        },
                        [this](WordPieceTables& pieces) {
                          word_pieces_ = std::make_unique<WordPieces>(std::move(pieces));
                        },
                        [this](BytePieceTables& pieces) {
                          byte_pieces_ = std::make_unique<BytePieces>(std::move(pieces));
                        },
                        [this](WordRule& rule) { rule_ = rule; }},
             tables.method);
  for (uint32_t id = 0; id < size(); ++id) marks_.Add(Piece(id));
}

Result<std::shared_ptr<const Tokenizer>> Tokenizer::Create(TextTables tables, Marks marks) {
  KINGLET_RETURN_IF_ERROR(CheckTextTables(KINGLET_INVALID_ARGUMENT, tables));
  return std::shared_ptr<const Tokenizer>(new Tokenizer(std::move(tables), std::move(marks)));
}

Result<TokenizedText> Tokenizer::EncodePlain(std::string_view text,
                                             const std::shared_ptr<MemoryBudget>& budget,
                                             TextPart& part) const {
  NormalisedText normalised;
  if (sentence_pieces_) {
    // The longest text that may be tokenized, because normalising takes less memory than
    // tokenizing.
    const uint64_t most = budget ? budget->left() / kTokenizerBytes : kMaxTextBytes;
    KINGLET_ASSIGN_OR_RETURN(normalised, sentence_pieces_->Normalise(text, most, part));
    text = normalised.text;
  }
  MemoryClaim memory;
  if (budget) {
    const uint64_t bytes =
        text.size() * kTokenizerBytes + (text.size() > MergeQueue::kFewPlaces ? queue_bytes_ : 0);
    if (!budget->Claim(bytes)) return RefuseTextMemory(text.size());
    memory = MemoryClaim(budget, bytes);
  }
  Result<TokenizedText> tokenized =
      sentence_pieces_ ? sentence_pieces_->EncodeNormalised(std::move(normalised), part)
      : word_merges_   ? word_merges_->Encode(text)
      : word_pieces_   ? word_pieces_->Encode(text)
      : byte_pieces_   ? byte_pieces_->Encode(text, part)
                       : SplitByRule(rule_.rule, text, marks_, part);
  if (tokenized.ok()) tokenized->memory = std::move(memory);
  return tokenized;
}

Result<TokenizedText> Tokenizer::Encode(std::string_view text,
                                        const std::shared_ptr<MemoryBudget>& budget) const {
  TextPart whole;
  return EncodePart(text, budget, whole);
}

void Tokenizer::ReadAhead(std::string_view text, WikiTextLine& line) const {
  if (lower_case_) return ReadWikiText(LowerCase(text, marks_).text, marks_, line);
  ReadWikiText(text, marks_, line);
}

Result<TokenizedText> Tokenizer::EncodePart(std::string_view text,
                                            const std::shared_ptr<MemoryBudget>& budget,
                                            TextPart& part) const {
  if (text.size() >= kMaxTextBytes) return RefuseLongText(text.size());
  // Refused before the text is lower-cased or normalised, which takes memory too.
  if (budget && budget->left() / kTokenizerBytes < text.size())
    return RefuseTextMemory(text.size());
  if (!lower_case_) return EncodePlain(text, budget, part);
  const NormalisedText lower = LowerCase(text, marks_);
  KINGLET_ASSIGN_OR_RETURN(TokenizedText tokenized, EncodePlain(lower.text, budget, part));
  for (TokenizedText::Token& token : tokenized.tokens) {
    token.begin = lower.origins[token.begin];
    token.end = lower.origins[token.end];
  }
  return tokenized;
}

uint32_t Tokenizer::SizeOf(const TextTables& tables) {
  return static_cast<uint32_t>(
      std::visit(Overloaded{[](const SentencePieceTables& method) { return method.pieces.size(); },
                            [](const WordPieceTables& method) { return method.pieces.size(); },
                            [](const BytePieceTables& method) { return method.pieces.size(); },
                            [](const auto&) { return size_t{0}; }},
                 tables.method));
}

uint32_t Tokenizer::size() const {
  if (sentence_pieces_) return static_cast<uint32_t>(sentence_pieces_->tables().pieces.size());
  if (byte_pieces_) return static_cast<uint32_t>(byte_pieces_->tables().pieces.size());
  return word_pieces_ ? static_cast<uint32_t>(word_pieces_->tables().pieces.size()) : 0;
}

std::string_view Tokenizer::Piece(uint32_t id) const {
  if (sentence_pieces_) return sentence_pieces_->tables().pieces[id].text;
  return byte_pieces_ ? byte_pieces_->tables().pieces[id] : word_pieces_->tables().pieces[id];
}

std::optional<uint32_t> Tokenizer::unknown_piece() const {
  if (sentence_pieces_) return sentence_pieces_->unknown();
  return word_pieces_ ? std::optional(word_pieces_->unknown()) : std::nullopt;
}

bool Tokenizer::WritesTogether(std::string_view piece) const {
  return reads_ahead() && IsSplitFromWord(piece);
}

Spelling Tokenizer::Spell(uint32_t id) const {
  if (byte_pieces_) return byte_pieces_->Spell(id);
  return sentence_pieces_ ? sentence_pieces_->Spell(id) : Spell(Piece(id));
}

Spelling Tokenizer::Spell(std::string_view piece) const {
  if (sentence_pieces_) return sentence_pieces_->Spell(sentence_pieces_->IdOf(piece));
  if (byte_pieces_) {
    const std::optional<uint32_t> id = byte_pieces_->IdOf(piece);
    return id ? byte_pieces_->Spell(*id) : Spelling{std::string(piece), true, true};
  }
  if (word_merges_) {
    const bool continues = piece.ends_with(kJoinMark);
    if (continues) piece.remove_suffix(kJoinMark.size());
    return {std::string(piece), false, continues};
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
  if (tokenizer_->byte_pieces_) {
    bytes_ += spelling.text;
    return TakeCharacters(bytes_, false);
  }
  // A token that spells nothing and joins both sides changes no text.
  if (spelling.text.empty() && spelling.joins_before) return {};
  const bool spaced = !spelling.joins_before && !joined_;
  joined_ = spelling.joins_after;
  return (spaced ? " " : "") + spelling.text;
}

std::string TextDecoder::Finish() {
  std::string out = sentence_ ? sentence_->Finish() : TakeCharacters(bytes_, true);
  *this = TextDecoder(*tokenizer_);
  return out;
}

}  // namespace kinglet

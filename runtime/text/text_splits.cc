// No token crosses a pair of characters that are neighbours in no piece: all segmentations of a
// unigram model have a border there, and no merge of BPE joins them.
#include "runtime/text/text_splits.h"

#include <algorithm>
#include <optional>

#include "format/utf8.h"
#include "runtime/text/lower_case.h"
#include "runtime/text/white_space.h"

namespace kinglet {
namespace {

using Algorithm = SentencePieceTables::Algorithm;
using Type = SentencePieceTables::Type;

constexpr uint32_t kByteOrderMarkCode = 0xFEFF;

std::optional<uint32_t> CharacterAt(std::string_view text, size_t at) {
  const std::string_view rest = text.substr(at);
  const size_t length = CharacterLength(rest);
  return length == 0 ? std::nullopt : std::optional(CodePointOf(rest.substr(0, length)));
}

// The character that ends at an offset above 0.
std::optional<uint32_t> CharacterBefore(std::string_view text, size_t at) {
  constexpr size_t kMostCharacterBytes = 4;
  for (size_t length = 1; length <= std::min(at, kMostCharacterBytes); ++length) {
    if (CharacterLength(text.substr(at - length)) == length) return CharacterAt(text, at - length);
  }
  return std::nullopt;
}

template <class Value>
void SortUnique(std::vector<Value>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

}  // namespace

bool TextSplits::Pairs::Add(std::string_view text) {
  if (!IsUtf8(text)) return false;
  for (uint64_t left = 0; !text.empty();) {
    const size_t length = CharacterLength(text);
    const uint64_t right = CodePointOf(text.substr(0, length));
    if (left != 0) pairs_.push_back(left << 32U | right);
    left = right;
    text.remove_prefix(length);
  }
  return true;
}

void TextSplits::Pairs::Sort() { SortUnique(pairs_); }

bool TextSplits::Pairs::Contains(uint32_t left, uint32_t right) const {
  return std::binary_search(pairs_.begin(), pairs_.end(), uint64_t{left} << 32U | right);
}

TextSplits::TextSplits(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {
  if (tokenizer.word_pieces_) return;
  bool readable = true;
  for (const std::string& mark : tokenizer.marks_.words()) readable &= original_.Add(mark);
  if (tokenizer.byte_pieces_) {
    const BytePieceTables& tables = tokenizer.byte_pieces_->tables();
    for (const uint32_t id : tables.marks) readable &= original_.Add(tables.pieces[id]);
  }
  if (tokenizer.sentence_pieces_) readable &= ReadPieces(*tokenizer.sentence_pieces_);
  if (!readable) return;
  original_.Sort();
  normalised_.Sort();
  SortUnique(rewritten_first_);
  SortUnique(rewritten_last_);
  if (tokenizer.sentence_pieces_) {
    kind_ = Kind::kBetweenPieces;
  } else if (tokenizer.byte_pieces_) {
    kind_ = Kind::kBeforeSpaces;
  } else {
    const bool characters =
        !tokenizer.word_merges_ && tokenizer.rule_.rule == WordRule::Rule::kCharacters;
    kind_ = characters ? Kind::kBetweenCharacters : Kind::kAfterSpaces;
  }
}

// Returns false for a model whose texts are not split.
bool TextSplits::ReadPieces(const SentencePieces& pieces) {
  const SentencePieceTables& tables = pieces.tables();
  // Words end at the marks of escaped spaces.
  bool readable = tables.algorithm != Algorithm::kWord || tables.normaliser.escape;
  for (const SentencePieceTables::Piece& piece : tables.pieces) {
    if (piece.type == Type::kControl || piece.type == Type::kByte) continue;
    readable &= normalised_.Add(piece.text);
    if (piece.type == Type::kUserDefined) readable &= original_.Add(piece.text);
    readable &= tables.algorithm != Algorithm::kBpe || piece.type != Type::kUnused;
  }
  for (const auto& rule : tables.normaliser.rules) {
    if (!readable || !original_.Add(rule.from)) return false;
    rewritten_first_.push_back(*CharacterAt(rule.from, 0));
    rewritten_last_.push_back(*CharacterBefore(rule.from, rule.from.size()));
  }
  return readable;
}

bool TextSplits::IsLowerCase(uint32_t code) const {
  return !tokenizer_.lower_case_ || LowerCase(code) == code;
}

// Whether no rule of the normaliser begins with the character.
bool TextSplits::Stays(uint32_t code) const {
  return IsLowerCase(code) &&
         !std::binary_search(rewritten_first_.begin(), rewritten_first_.end(), code);
}

// Whether no rule of the normaliser ends with the character.
bool TextSplits::EndsAlone(uint32_t code) const {
  return IsLowerCase(code) &&
         !std::binary_search(rewritten_last_.begin(), rewritten_last_.end(), code);
}

// Whether a word after a space is surely a piece.
bool TextSplits::IsKnownWord(std::string_view word) const {
  if (word.find(kSpaceMark) != word.npos) return false;
  for (size_t at = 0; at < word.size(); at += CharacterLength(word.substr(at))) {
    const std::optional<uint32_t> code = CharacterAt(word, at);
    if (!code || !Stays(*code) || (at == 0 && original_.Contains(' ', *code))) return false;
  }
  return tokenizer_.sentence_pieces_->IsKnown(std::string(kSpaceMark) + std::string(word));
}

bool TextSplits::IsBetweenPieces(uint32_t left, uint32_t right, std::string_view text,
                                 size_t at) const {
  const SentencePieces& pieces = *tokenizer_.sentence_pieces_;
  if (!EndsAlone(left) || !Stays(right)) return false;
  const auto normalised = [&](uint32_t code) {
    return code == ' ' && pieces.tables().normaliser.escape ? CodePointOf(kSpaceMark) : code;
  };
  if (normalised_.Contains(normalised(left), normalised(right))) return false;
  const bool words = pieces.tables().algorithm == Algorithm::kWord;
  // Unknown characters, and unknown words, that follow each other are one token.
  std::string first;
  AppendCodePoint(normalised(right), first);
  if (!words && !pieces.tables().byte_fallback && !pieces.IsKnown(first)) return false;
  if (right != ' ') return !words;
  // The normaliser drops spaces at the text's end, so each part has more than spaces.
  const std::optional<uint32_t> next = CharacterAt(text, at + 1);
  if (left == ' ' || !next || *next == ' ' || *next == '\r' || !Stays(*next)) return false;
  if (!words || pieces.tables().byte_fallback) return true;
  const size_t end = text.find(' ', at + 1);
  if (end != text.npos && IsKnownWord(text.substr(at + 1, end - at - 1))) return true;
  // The normaliser drops spaces where the text begins.
  const size_t space = text.rfind(' ', at - 1);
  if (space == text.npos || space == 0) return false;
  const std::optional<uint32_t> before = CharacterBefore(text, space);
  return before && *before != ' ' && EndsAlone(*before) &&
         IsKnownWord(text.substr(space + 1, at - space - 1));
}

bool TextSplits::IsSplit(std::string_view text, size_t at) const {
  const std::optional<uint32_t> left = CharacterBefore(text, at), right = CharacterAt(text, at);
  // Bytes that are no text where a line begins or ends stay inside a part.
  if (!left || !right || *left == '\r' || *right == '\r' || *right == kByteOrderMarkCode ||
      original_.Contains(*left, *right)) {
    return false;
  }
  switch (kind_) {
    case Kind::kNever:
      return false;
    case Kind::kAfterSpaces: {
      if (*left != ' ' || *right == ' ') return false;
      // Byte-pair codes drop carriage returns and spaces at a text's end.
      const size_t last = text.find_last_not_of(' ', at - 1);
      return last != text.npos && text[last] != '\r';
    }
    case Kind::kBeforeSpaces:
      // No part of the pattern ends with one white space more.
      return *right == ' ' && LastSpaceLength(text.substr(0, at)) == 0;
    case Kind::kBetweenCharacters:
      return true;
    case Kind::kBetweenPieces:
      return IsBetweenPieces(*left, *right, text, at);
  }
  return false;
}

size_t TextSplits::Last(std::string_view text) const {
  if (kind_ == Kind::kNever || text.empty()) return 0;
  size_t at = text.size() - 1;
  while (at > 0 && !IsSplit(text, at)) --at;
  return at;
}

}  // namespace kinglet

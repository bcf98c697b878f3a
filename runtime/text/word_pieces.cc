// BasicTokenizer and WordpieceTokenizer, character by character.
#include "runtime/text/word_pieces.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "format/utf8.h"
#include "runtime/text/lower_case.h"
#include "runtime/text/normaliser.h"
#include "runtime/text/unicode_ranges.h"
#include "runtime/text/without_accents.h"

namespace kinglet {
namespace {

constexpr size_t kLongestWordLetters = 100;
constexpr std::string_view kPairMark = " ||| ";
constexpr std::array<std::string_view, 5> kMarksKept = {"[UNK]", "[SEP]", "[PAD]", "[CLS]",
                                                        "[MASK]"};

constexpr CodeRange kIdeographs[] = {{0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xF900, 0xFAFF},
                                     {0x20000, 0x2A6DF}, {0x2A700, 0x2B73F}, {0x2B740, 0x2B81F},
                                     {0x2B820, 0x2CEAF}, {0x2F800, 0x2FA1F}};
// White space: general categories Zs, Zl and Zp, and the other characters of Python's split().
constexpr CodeRange kSpaces[] = {
    {'\t', '\n'},     {'\r', '\r'},     {' ', ' '},       {0xA0, 0xA0},     {0x1680, 0x1680},
    {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}};

bool IsPunctuation(uint32_t code) {
  if (code < 0x80) {
    return (code >= 33 && code <= 47) || (code >= 58 && code <= 64) || (code >= 91 && code <= 96) ||
           (code >= 123 && code <= 126);
  }
  return InRanges(kPunctuation, code);
}

}  // namespace

WordPieces::WordPieces(WordPieceTables tables) : tables_(std::move(tables)) {
  std::vector<std::pair<std::string_view, uint32_t>> first, continued, marks;
  first.reserve(tables_.pieces.size());
  for (uint32_t id = 0; id < tables_.pieces.size(); ++id) {
    const std::string_view piece = tables_.pieces[id];
    if (piece == "[UNK]") unknown_ = id;
    if (piece == "[CLS]") begin_mark_ = id;
    if (piece == "[SEP]") end_mark_ = id;
    first.emplace_back(piece, id);
    if (piece.size() > kContinues.size() && piece.starts_with(kContinues)) {
      continued.emplace_back(piece.substr(kContinues.size()), id);
    }
    if (std::find(kMarksKept.begin(), kMarksKept.end(), piece) != kMarksKept.end()) {
      marks.emplace_back(piece, id);
    }
  }
  first_ = PrefixTrie(std::move(first));
  continued_ = PrefixTrie(std::move(continued));
  marks_ = PrefixTrie(std::move(marks));
}

void WordPieces::Put(uint32_t id, uint32_t begin, uint32_t end, TokenizedText& tokenized) const {
  AppendToken(id, begin, end, tables_.pieces[id], tokenized);
}

void WordPieces::PutMark(std::optional<uint32_t> id, uint32_t place,
                         TokenizedText& tokenized) const {
  if (id) Put(*id, place, place, tokenized);
}

void WordPieces::EncodeWord(const std::vector<Letter>& word, TokenizedText& tokenized) const {
  if (word.empty()) return;
  std::string spelling;
  std::vector<size_t> ends;  // of each letter in the spelling
  if (word.size() <= kLongestWordLetters) {
    for (const Letter& letter : word) {
      AppendCodePoint(letter.code, spelling);
      ends.push_back(spelling.size());
    }
  }
  const size_t tokens = tokenized.tokens.size(), bytes = tokenized.spellings.size();
  size_t letter = 0;
  for (size_t at = 0; at < spelling.size();) {
    const PrefixTrie& trie = at == 0 ? first_ : continued_;
    const PrefixTrie::Match match = trie.Longest(std::string_view(spelling).substr(at));
    if (match.length == 0) break;
    const size_t from = letter;
    at += match.length;
    while (letter < ends.size() && ends[letter] <= at) letter += 1;
    Put(match.value, word[from].begin, word[letter - 1].end, tokenized);
  }
  if (letter == word.size()) return;
  tokenized.tokens.resize(tokens);
  tokenized.spellings.resize(bytes);
  Put(unknown_, word.front().begin, word.back().end, tokenized);
}

void WordPieces::AddLetters(const Letter& letter, std::vector<Letter>& word) const {
  if (!tables_.plain_letters) {
    word.push_back(letter);
    return;
  }
  // The only letter whose lower-case form has two characters, the second a mark.
  constexpr uint32_t kDottedCapitalI = 0x130;
  const uint32_t lower = letter.code == kDottedCapitalI ? 'i' : LowerCase(letter.code);
  ForEachBase(lower, [&](uint32_t code) { word.push_back({code, letter.begin, letter.end}); });
}

void WordPieces::EncodePlain(std::string_view text, uint32_t begin, uint32_t end,
                             TokenizedText& tokenized) const {
  std::vector<Letter> word, letters;
  const auto finish = [&] {
    EncodeWord(word, tokenized);
    word.clear();
  };
  for (uint32_t at = begin; at < end;) {
    const std::string_view rest = text.substr(at, end - at);
    const size_t length = CharacterLength(rest);
    const auto stop = at + static_cast<uint32_t>(std::max<size_t>(length, 1));
    const uint32_t code = length == 0 ? 0 : CodePointOf(rest.substr(0, length));
    const Letter letter{code, at, stop};
    at = stop;
    if (InRanges(kSpaces, code)) {
      finish();
      continue;
    }
    // Ignored: U+FFFD, which stands for bytes that were no text, and bytes of no character.
    if (code == 0xFFFD || InRanges(kControls, code)) continue;
    letters.clear();
    AddLetters(letter, letters);
    const bool ideograph = InRanges(kIdeographs, code);
    if (ideograph) finish();
    for (const Letter& made : letters) {
      const bool alone = IsPunctuation(made.code);
      if (alone) finish();
      word.push_back(made);
      if (alone) finish();
    }
    if (ideograph) finish();
  }
  finish();
}

void WordPieces::EncodePart(std::string_view text, uint32_t begin, uint32_t end,
                            TokenizedText& tokenized) const {
  uint32_t plain = begin;
  for (uint32_t at = begin; at < end;) {
    const PrefixTrie::Match mark =
        text[at] == '[' ? marks_.Longest(text.substr(at, end - at)) : PrefixTrie::Match();
    if (mark.length == 0) {
      at += 1;
      continue;
    }
    EncodePlain(text, plain, at, tokenized);
    plain = at + static_cast<uint32_t>(mark.length);
    Put(mark.value, at, plain, tokenized);
    at = plain;
  }
  EncodePlain(text, plain, end, tokenized);
}

Result<TokenizedText> WordPieces::Encode(std::string_view text) const {
  if (text.size() >= kMaxTextBytes) return RefuseLongText(text.size());
  const auto size = static_cast<uint32_t>(text.size());
  const size_t pair = text.find(kPairMark);
  const uint32_t end = pair == text.npos ? size : static_cast<uint32_t>(pair);
  TokenizedText tokenized;
  PutMark(begin_mark_, 0, tokenized);
  EncodePart(text, 0, end, tokenized);
  PutMark(end_mark_, end, tokenized);
  tokenized.segments.assign(tokenized.tokens.size(), 0);
  if (pair == text.npos) return tokenized;
  EncodePart(text, end + static_cast<uint32_t>(kPairMark.size()), size, tokenized);
  PutMark(end_mark_, size, tokenized);
  tokenized.segments.resize(tokenized.tokens.size(), 1);
  return tokenized;
}

}  // namespace kinglet

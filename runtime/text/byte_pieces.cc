// The pattern that splits a text before bytes are merged:
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
#include "runtime/text/byte_pieces.h"

#include <algorithm>
#include <utility>

#include "format/byte_alphabet.h"
#include "format/utf8.h"
#include "runtime/text/merge_queue.h"
#include "runtime/text/normaliser.h"
#include "runtime/text/unicode_letters.h"
#include "runtime/text/white_space.h"

namespace kinglet {
namespace {

enum class CharacterClass : uint8_t { kSpace, kLetter, kNumber, kSign };

constexpr std::string_view kContractions[] = {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"};

// The class of the character that a text begins with. Separators U+001C to U+001F are white space
// for Python, not for Unicode.
CharacterClass ClassOf(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (SpaceLength(text) > 0 && (first < 0x1C || first > 0x1F)) return CharacterClass::kSpace;
  const size_t length = CharacterLength(text);
  if (length == 0) return CharacterClass::kSign;
  const uint32_t code = CodePointOf(text.substr(0, length));
  if (InRanges(kLetters, code)) return CharacterClass::kLetter;
  return InRanges(kNumbers, code) ? CharacterClass::kNumber : CharacterClass::kSign;
}

// The bytes of the first characters of `text` that have this class.
size_t RunOf(CharacterClass kind, std::string_view text) {
  size_t at = 0;
  while (at < text.size() && ClassOf(text.substr(at)) == kind) at += UnitLength(text.substr(at));
  return at;
}

// The bytes of the first match of the pattern. REQUIRES: a text that is not empty.
size_t FirstMatch(std::string_view text) {
  for (const std::string_view contraction : kContractions) {
    if (text.starts_with(contraction)) return contraction.size();
  }
  const size_t space = text[0] == ' ' ? 1 : 0;
  if (space < text.size()) {
    const CharacterClass kind = ClassOf(text.substr(space));
    if (kind != CharacterClass::kSpace) return space + RunOf(kind, text.substr(space));
  }
  const size_t run = RunOf(CharacterClass::kSpace, text);
  if (run == text.size()) return run;
  // The last white space goes with what follows, or stays alone.
  const size_t before_last = run - LastSpaceLength(text.substr(0, run));
  return before_last > 0 ? before_last : run;
}

}  // namespace

BytePieces::BytePieces(BytePieceTables tables) : tables_(std::move(tables)) {
  std::vector<std::pair<std::string_view, uint32_t>> marks;
  ids_.reserve(tables_.pieces.size());
  for (uint32_t id = 0; id < tables_.pieces.size(); ++id) {
    ids_.emplace(tables_.pieces[id], id);
    if (std::binary_search(tables_.marks.begin(), tables_.marks.end(), id)) {
      marks.emplace_back(tables_.pieces[id], id);
    }
  }
  marks_ = PrefixTrie(std::move(marks));
  for (size_t byte = 0; byte < byte_ids_.size(); ++byte) {
    std::string letter;
    AppendCodePoint(ByteAlphabet()[byte], letter);
    byte_ids_[byte] = ids_.at(letter);
  }
  merges_.reserve(tables_.merges.size());
  for (uint32_t rank = 0; rank < tables_.merges.size(); ++rank) {
    const auto [left, right] = tables_.merges[rank];
    const uint32_t made = ids_.at(tables_.pieces[left] + tables_.pieces[right]);
    merges_.emplace(uint64_t{left} << 32U | right, Merge{rank, made});
  }
}

std::optional<uint32_t> BytePieces::IdOf(std::string_view piece) const {
  const auto found = ids_.find(piece);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

Spelling BytePieces::Spell(uint32_t id) const {
  const auto is_among = [id](const std::vector<uint32_t>& ids) {
    return std::binary_search(ids.begin(), ids.end(), id);
  };
  if (is_among(tables_.spelled_marks)) return {tables_.pieces[id], true, true};
  if (is_among(tables_.marks)) return {"", true, true};
  return {BytesOfAlphabet(tables_.pieces[id]).value_or(""), true, true};
}

const BytePieces::Merge* BytePieces::MergeOf(uint32_t left, uint32_t right) const {
  const auto found = merges_.find(uint64_t{left} << 32U | right);
  return found == merges_.end() ? nullptr : &found->second;
}

void BytePieces::EncodeWord(std::string_view word, uint32_t begin, bool space_before,
                            TokenizedText& tokenized) const {
  constexpr uint32_t kNone = UINT32_MAX;
  struct Symbol {
    uint32_t id;              // kNone after a merge with the symbol before
    uint32_t previous, next;  // places
    uint32_t begin, end;      // bytes of the text
  };
  std::vector<Symbol> symbols;
  const auto add = [&](unsigned char byte, uint32_t from, uint32_t to) {
    const auto place = static_cast<uint32_t>(symbols.size());
    symbols.push_back({byte_ids_[byte], place - 1, place + 1, from, to});
  };
  symbols.reserve(word.size() + 1);
  if (space_before) add(' ', begin, begin);
  for (const char byte : word) {
    add(static_cast<unsigned char>(byte), begin, begin + 1);
    ++begin;
  }
  symbols.back().next = kNone;
  MergeQueue queue(symbols.size(), tables_.merges.size());
  const auto merge_at = [&](uint32_t place) {
    const uint32_t next = symbols[place].next;
    return next == kNone ? nullptr : MergeOf(symbols[place].id, symbols[next].id);
  };
  const auto consider = [&](uint32_t place) {
    if (const Merge* const merge = merge_at(place)) queue.Push({merge->rank, place});
  };
  for (uint32_t place = 0; place < symbols.size(); ++place) consider(place);
  // The loop ends, because each merge reduces the number of symbols and adds at most two places to
  // the queue.
  while (!queue.empty()) {
    const auto [rank, place] = queue.Pop();
    Symbol& left = symbols[place];
    const Merge* const merge = left.id == kNone ? nullptr : merge_at(place);
    if (merge == nullptr || merge->rank != rank) continue;
    Symbol& right = symbols[left.next];
    left.id = merge->made;
    left.end = right.end;
    left.next = right.next;
    right.id = kNone;
    if (left.next != kNone) symbols[left.next].previous = place;
    consider(place);
    if (left.previous != kNone) consider(left.previous);
  }
  for (uint32_t place = 0; place != kNone; place = symbols[place].next) {
    const Symbol& symbol = symbols[place];
    AppendToken(symbol.id, symbol.begin, symbol.end, tables_.pieces[symbol.id], tokenized);
  }
}

void BytePieces::EncodePlain(std::string_view text, uint32_t begin, uint32_t end, bool space_before,
                             TokenizedText& tokenized) const {
  std::string_view rest = text.substr(begin, end - begin);
  space_before = space_before && !rest.empty() && rest[0] != ' ';
  // A space in front is a part of the first match, unless white space follows.
  if (space_before && ClassOf(rest) == CharacterClass::kSpace) {
    const std::string spaced =
        " " + std::string(rest.substr(0, RunOf(CharacterClass::kSpace, rest)));
    const std::string_view after = rest.substr(spaced.size() - 1);
    size_t length = spaced.size();
    if (!after.empty()) length -= LastSpaceLength(spaced);
    EncodeWord(rest.substr(0, length - 1), begin, true, tokenized);
    begin += static_cast<uint32_t>(length - 1);
    rest.remove_prefix(length - 1);
    space_before = false;
  }
  while (!rest.empty()) {
    size_t length = FirstMatch(rest);
    if (space_before && rest[0] == '\'') length = RunOf(CharacterClass::kSign, rest);
    EncodeWord(rest.substr(0, length), begin, space_before, tokenized);
    begin += static_cast<uint32_t>(length);
    rest.remove_prefix(length);
    space_before = false;
  }
}

Result<TokenizedText> BytePieces::Encode(std::string_view text, TextPart& part) const {
  if (text.size() >= kMaxTextBytes) return RefuseLongText(text.size());
  const auto size = static_cast<uint32_t>(text.size());
  TokenizedText tokenized;
  uint32_t plain = 0;
  bool space_before = tables_.space_before && std::exchange(part.begins, false);
  const auto finish = [&](uint32_t end) {
    if (end > plain) EncodePlain(text, plain, end, space_before, tokenized);
    space_before = tables_.space_before;
  };
  for (uint32_t at = 0; at < size && !tables_.marks.empty();) {
    const PrefixTrie::Match mark = marks_.Longest(text.substr(at));
    if (mark.length == 0) {
      at += 1;
      continue;
    }
    finish(at);
    plain = at + static_cast<uint32_t>(mark.length);
    AppendToken(mark.value, at, plain, tables_.pieces[mark.value], tokenized);
    at = plain;
  }
  finish(size);
  return tokenized;
}

}  // namespace kinglet

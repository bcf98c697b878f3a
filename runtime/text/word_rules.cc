// Moses' tokenizer, as far as WikiText shows it.
#include "runtime/text/word_rules.h"

#include <algorithm>
#include <array>
#include <span>

#include "format/utf8.h"
#include "runtime/text/normaliser.h"
#include "runtime/text/unicode_ranges.h"
#include "runtime/text/white_space.h"

namespace kinglet {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }
bool IsAsciiLetter(char c) { return IsUpper(c) || (c >= 'a' && c <= 'z'); }

// What stands alone wherever it occurs: of ASCII, and beyond it punctuation and
constexpr std::string_view kMarksAlone = "\"()[]{};:!?,$%#*=+/\\|~^`&";
// signs, currencies, arrows, shapes and emoji.
constexpr std::array<CodeRange, 12> kAloneSymbols = {{{0xA2, 0xA6},
                                                      {0xA8, 0xA9},
                                                      {0xAC, 0xAC},
                                                      {0xAE, 0xB1},
                                                      {0xB4, 0xB4},
                                                      {0xD7, 0xD7},
                                                      {0xF7, 0xF7},
                                                      {0x20A0, 0x20CF},
                                                      {0x2190, 0x23FF},
                                                      {0x2500, 0x27BF},
                                                      {0x2900, 0x2BFF},
                                                      {0x1F000, 0x1FAFF}}};
// What may follow the apostrophe that closes a quotation.
constexpr std::string_view kClosing = "\".,;:!?)]}";
// What shows, where it stands alone, that a line was cut before.
constexpr std::array<std::string_view, 13> kSigns = {",", ".", "(",   ")",   "\"",  "=",    ";",
                                                     ":", "'", "@-@", "@,@", "@.@", "<unk>"};
// Words that keep their full stop inside a sentence.
constexpr std::array<std::string_view, 36> kAbbreviations = {
    "Mr", "Mrs", "Ms",  "Dr",  "Prof", "St",   "Sr",  "Jr",  "Rev", "Gen",  "Col", "Capt",
    "Lt", "Sgt", "Gov", "Sen", "Rep",  "Hon",  "Inc", "Ltd", "Co",  "Corp", "vs",  "v",
    "No", "Nos", "Vol", "Mt",  "Op",   "Bros", "pp",  "etc", "cf",  "al",   "Maj", "Adm"};

// What follows an apostrophe that belongs to the word before it: a word of a text that was cut.
constexpr std::array<std::string_view, 7> kEndings = {"t", "s", "re", "ve", "ll", "d", "m"};

template <class Range>
bool Contains(const Range& range, std::string_view text) {
  return std::find(range.begin(), range.end(), text) != range.end();
}

// The words between white space, as offsets.
struct Word {
  size_t begin, end;
};

std::vector<Word> SplitAtSpaces(std::string_view text) {
  std::vector<Word> words;
  for (size_t begin = 0, at = 0; at <= text.size();) {
    const size_t space = SpaceLength(text.substr(at));
    if (space == 0 && at < text.size()) {
      at += 1;
      continue;
    }
    if (at > begin) words.push_back({begin, at});
    at += std::max<size_t>(space, 1);
    begin = at;
  }
  return words;
}

// A character of a word, or a byte that belongs to none.
struct Unit {
  enum class Kind : uint8_t { kLetter, kDigit, kAlone, kOther };
  size_t begin, end;
  Kind kind;
};

Unit::Kind KindOf(std::string_view character) {
  const char first = character[0];
  if (IsDigit(first)) return Unit::Kind::kDigit;
  if (IsAsciiLetter(first)) return Unit::Kind::kLetter;
  if (static_cast<unsigned char>(first) < 0x80) {
    return kMarksAlone.find(first) != kMarksAlone.npos ? Unit::Kind::kAlone : Unit::Kind::kOther;
  }
  if (character.size() == 1) return Unit::Kind::kLetter;
  const uint32_t code = CodePointOf(character);
  const bool alone = InRanges(kPunctuation, code) || InRanges(kAloneSymbols, code);
  return alone ? Unit::Kind::kAlone : Unit::Kind::kLetter;
}

class WikiTextCutter {
 public:
  WikiTextCutter(std::string_view text, Cut& cut) : text_(text), cut_(cut) {}

  void CutText() {
    const std::vector<Word> words = SplitAtSpaces(text_);
    const bool already = std::any_of(words.begin(), words.end(), [&](const Word& word) {
      return Contains(kSigns, text_.substr(word.begin, word.end - word.begin));
    });
    size_t quotes_end = words.size();  // no word from here on closes a quotation
    while (!already && quotes_end > 0 && !ClosesQuotation(words[quotes_end - 1])) quotes_end -= 1;
    for (size_t i = 0; i < words.size(); ++i) {
      const Word& word = words[i];
      if (already) {
        Put(word.begin, word.end);
      } else {
        may_open_ = i == 0 || i < quotes_end;
        CutWord(word, i + 1 == words.size());
      }
    }
  }

 private:
  void Put(size_t begin, size_t end) {
    if (begin >= end) return;
    AppendToken(kNoPieceId, static_cast<uint32_t>(begin), static_cast<uint32_t>(end),
                text_.substr(begin, end - begin), cut_);
  }

  void PutJoiner(size_t at) {
    const std::array<char, 3> joiner = {'@', text_[at], '@'};
    AppendToken(kNoPieceId, static_cast<uint32_t>(at), static_cast<uint32_t>(at + 1),
                std::string_view(joiner.data(), joiner.size()), cut_);
  }

  // Whether a word ends with an apostrophe, but for marks behind it.
  bool ClosesQuotation(const Word& word) const {
    const size_t last = text_.substr(word.begin, word.end - word.begin).find_last_not_of(kClosing);
    return last != std::string_view::npos && text_[word.begin + last] == '\'';
  }

  // The first byte of a unit of the word; where the word ends, its end.
  size_t Place(size_t unit) const { return unit < units_.size() ? units_[unit].begin : end_; }
  char First(size_t unit) const { return text_[units_[unit].begin]; }
  bool IsWordUnit(size_t unit) const {
    return units_[unit].kind == Unit::Kind::kLetter || units_[unit].kind == Unit::Kind::kDigit;
  }
  bool IsKind(size_t unit, Unit::Kind kind) const { return units_[unit].kind == kind; }

  // Where the full stops before unit `end` begin, if they are cut off.
  size_t StopsAt(size_t end, bool last) const {
    size_t stops = end;
    while (stops > 0 && First(stops - 1) == '.') stops -= 1;
    if (end - stops != 1 || last) return stops;
    const std::string_view word = text_.substr(Place(0), Place(stops) - Place(0));
    const bool initial = word.size() == 1 && IsUpper(word[0]);
    const bool dotted = word.find('.') != word.npos && !IsDigit(word.back());
    return initial || dotted || Contains(kAbbreviations, word) ? end : stops;
  }

  void CutWord(const Word& word, bool last) {
    units_.clear();
    end_ = word.end;
    for (size_t at = word.begin; at < word.end;) {
      const size_t end = at + UnitLength(text_.substr(at, word.end - at));
      units_.push_back({at, end, KindOf(text_.substr(at, end - at))});
      at = end;
    }
    // Closing marks after a full stop do not hide it.
    size_t close = units_.size();
    while (close > 0 && IsKind(close - 1, Unit::Kind::kAlone)) close -= 1;
    const size_t stops = StopsAt(close, last);
    CutInside(stops);
    Put(Place(stops), Place(close));
    for (size_t i = close; i < units_.size(); ++i) Put(Place(i), Place(i + 1));
  }

  // Whether an apostrophe at unit `i` of `end` begins a token. `first`: nothing stands before it.
  bool CutsApostrophe(size_t i, size_t end, bool first) const {
    if (first || i + 1 == end) return true;
    if (IsKind(i - 1, Unit::Kind::kDigit)) return First(i + 1) == 's';
    return IsKind(i - 1, Unit::Kind::kLetter) && IsKind(i + 1, Unit::Kind::kLetter);
  }
  // Whether it is a token of its own: at a word's end, and before one that it quotes. In a text
  // that was cut "'Brien" is the second half of a name.
  bool StandsAlone(size_t apostrophe, size_t end, bool first) const {
    if (apostrophe + 1 == end) return true;
    if (!first) return false;
    if (!IsKind(apostrophe + 1, Unit::Kind::kLetter)) return true;
    const size_t begin = Place(apostrophe + 1);
    return may_open_ && !Contains(kEndings, text_.substr(begin, Place(end) - begin));
  }

  // Cuts the first `end` units.
  void CutInside(size_t end) {
    size_t from = 0;
    const auto alone = [&](size_t first, size_t last) {
      Put(Place(from), Place(first));
      Put(Place(first), Place(last));
      from = last;
    };
    for (size_t i = 0; i < end; ++i) {
      const char c = First(i);
      const bool inside = i > 0 && i + 1 < end;
      const bool in_number = inside && (c == ',' || c == '.') &&
                             IsKind(i - 1, Unit::Kind::kDigit) && IsKind(i + 1, Unit::Kind::kDigit);
      if (in_number || (c == '-' && inside && IsWordUnit(i - 1) && IsWordUnit(i + 1))) {
        Put(Place(from), Place(i));
        PutJoiner(Place(i));
        from = i + 1;
      } else if (c == '\'' && CutsApostrophe(i, end, i == from)) {
        const bool first = i == from;
        Put(Place(from), Place(i));
        from = i;  // what follows keeps it: 's, 't
        if (StandsAlone(i, end, first)) alone(i, i + 1);
      } else if (c == '.' && i + 1 < end && First(i + 1) == '.') {
        size_t dots = i;
        while (dots < end && First(dots) == '.') dots += 1;
        alone(i, dots);
        i = dots - 1;
      } else if (IsKind(i, Unit::Kind::kAlone)) {
        alone(i, i + 1);
      }
    }
    Put(Place(from), Place(end));
  }

  std::string_view text_;
  Cut& cut_;
  std::vector<Unit> units_;  // of the current word, which ends before end_
  size_t end_ = 0;
  bool may_open_ = false;  // an apostrophe before a word may open a quotation
};

}  // namespace

Result<Cut> CutByRule(WordRule::Rule rule, std::string_view text) {
  if (text.size() >= kMaxTextBytes) return RefuseLongText(text.size());
  Cut cut;
  const auto put = [&](size_t begin, size_t end) {
    AppendToken(kNoPieceId, static_cast<uint32_t>(begin), static_cast<uint32_t>(end),
                text.substr(begin, end - begin), cut);
  };
  switch (rule) {
    case WordRule::Rule::kSpaces:
      for (const Word& word : SplitAtSpaces(text)) put(word.begin, word.end);
      break;
    case WordRule::Rule::kWikiText:
      WikiTextCutter(text, cut).CutText();
      break;
    case WordRule::Rule::kCharacters:
      for (size_t at = 0; at < text.size();) {
        const size_t end = at + UnitLength(text.substr(at));
        put(at, end);
        at = end;
      }
      break;
  }
  return cut;
}

}  // namespace kinglet

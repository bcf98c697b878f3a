// Moses' tokenizer, as far as WikiText shows it.
#include "runtime/text/word_rules.h"

#include <algorithm>
#include <array>
#include <span>

#include "format/utf8.h"
#include "runtime/text/normaliser.h"

namespace kinglet {
namespace {

bool IsSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r') || (c >= 0x1C && c <= 0x1F); }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }
// Letters, and every byte of a character above U+007F.
bool IsLetter(char c) {
  return IsUpper(c) || (c >= 'a' && c <= 'z') || static_cast<unsigned char>(c) >= 0x80;
}
bool IsWordByte(char c) { return IsDigit(c) || IsLetter(c); }

// What stands alone wherever it occurs.
constexpr std::string_view kAlone = "\"()[]{};:!?,$%#*=+/\\|~^`";
// What shows, where it stands alone, that a line was cut before.
constexpr std::array<std::string_view, 12> kSigns = {",", ".", "(",   ")",   "\"",  "=",
                                                     ";", ":", "@-@", "@,@", "@.@", "<unk>"};
// Words that keep their full stop inside a sentence.
constexpr std::array<std::string_view, 28> kAbbreviations = {
    "Mr",  "Mrs",  "Ms", "Dr",  "Prof", "St",  "Sr",  "Jr",  "Rev", "Gen",
    "Col", "Capt", "Lt", "Sgt", "Gov",  "Sen", "Rep", "Hon", "Inc", "Ltd",
    "Co",  "Corp", "vs", "No",  "Vol",  "Mt",  "etc", "cf"};

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
  for (size_t at = 0; at < text.size();) {
    if (IsSpace(text[at])) {
      at += 1;
      continue;
    }
    size_t end = at;
    while (end < text.size() && !IsSpace(text[end])) end += 1;
    words.push_back({at, end});
    at = end;
  }
  return words;
}

class WikiTextCutter {
 public:
  WikiTextCutter(std::string_view text, Cut& cut) : text_(text), cut_(cut) {}

  void CutText() {
    const std::vector<Word> words = SplitAtSpaces(text_);
    const bool already = std::any_of(words.begin(), words.end(), [&](const Word& word) {
      return Contains(kSigns, text_.substr(word.begin, word.end - word.begin));
    });
    for (size_t i = 0; i < words.size(); ++i) {
      const Word& word = words[i];
      if (already) {
        Put(word.begin, word.end);
      } else {
        CutWord(word.begin, word.end, i + 1 == words.size());
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

  bool Inside(size_t at, size_t begin, size_t end, bool (*kind)(char)) const {
    return at > begin && at + 1 < end && kind(text_[at - 1]) && kind(text_[at + 1]);
  }

  // Where the full stops at the end of the word begin, if they are cut off.
  size_t StopsAt(size_t begin, size_t end, bool last) const {
    size_t stops = end;
    while (stops > begin && text_[stops - 1] == '.') stops -= 1;
    if (end - stops != 1) return stops;
    if (last) return stops;
    const std::string_view word = text_.substr(begin, stops - begin);
    const bool initial = word.size() == 1 && IsUpper(word[0]);
    const bool dotted = word.find('.') != word.npos && !IsDigit(word.back());
    return initial || dotted || Contains(kAbbreviations, word) ? end : stops;
  }

  void CutWord(size_t begin, size_t end, bool last) {
    // Closing marks after a full stop do not hide it.
    size_t close = end;
    while (close > begin && kAlone.find(text_[close - 1]) != kAlone.npos) close -= 1;
    const size_t stops = StopsAt(begin, close, last);
    CutInside(begin, stops);
    Put(stops, close);
    for (size_t at = close; at < end; ++at) Put(at, at + 1);
  }

  void CutInside(size_t begin, size_t end) {
    size_t from = begin;
    for (size_t at = begin; at < end; ++at) {
      const char c = text_[at];
      const bool in_number = (c == ',' || c == '.') && Inside(at, begin, end, IsDigit);
      if (in_number || (c == '-' && Inside(at, begin, end, IsWordByte))) {
        Put(from, at);
        PutJoiner(at);
        from = at + 1;
      } else if (c == '\'' && (at == begin || at + 1 == end || Inside(at, begin, end, IsLetter))) {
        Put(from, at);
        from = at;  // what follows keeps it: 's, 't
        const bool ending = Contains(kEndings, text_.substr(at + 1, end - at - 1));
        if (at + 1 == end || (at == begin && !ending)) {
          Put(at, at + 1);
          from = at + 1;
        }
      } else if (kAlone.find(c) != kAlone.npos) {
        Put(from, at);
        Put(at, at + 1);
        from = at + 1;
      }
    }
    Put(from, end);
  }

  std::string_view text_;
  Cut& cut_;
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

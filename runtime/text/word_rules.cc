// The Moses tokenizer, as far as WikiText shows it.
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

// ASCII characters that are always tokens of their own.
constexpr std::string_view kMarksAlone = "\"()[]{};:!?,$%#*=+/\\|~^&";
// Other characters that are always tokens of their own, with punctuation: signs, currencies,
// arrows, shapes and emoji.
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
// Characters that may follow the apostrophe that closes a quotation.
constexpr std::string_view kClosing = "\".,;:!?)]}";
// Words that show, where they stand alone, that a line may have been tokenized before.
constexpr std::array<std::string_view, 13> kSigns = {",", ".", "(",   ")",   "\"",  "=",    ";",
                                                     ":", "'", "@-@", "@,@", "@.@", "<unk>"};
// Signs as the Moses tokenizer escapes them, from its first versions on.
struct Entity {
  std::string_view spelling;
  char sign;
};
constexpr std::array<Entity, 9> kEntities = {{{"&amp;", '&'},
                                              {"&apos;", '\''},
                                              {"&quot;", '"'},
                                              {"&lt;", '<'},
                                              {"&gt;", '>'},
                                              {"&#91;", '['},
                                              {"&#93;", ']'},
                                              {"&#124;", '|'},
                                              {"&bar;", '|'}}};
// Words that keep their full stop, except at a line's end.
constexpr std::array<std::string_view, 36> kAbbreviations = {
    "Mr", "Mrs", "Ms",  "Dr",  "Prof", "St",   "Sr",  "Jr",  "Rev", "Gen",  "Col", "Capt",
    "Lt", "Sgt", "Gov", "Sen", "Rep",  "Hon",  "Inc", "Ltd", "Co",  "Corp", "vs",  "v",
    "No", "Nos", "Vol", "Mt",  "Op",   "Bros", "pp",  "etc", "cf",  "al",   "Maj", "Adm"};

// The most letters after a full stop inside a word that keeps its last one: "Ph.D." and "p.m.", not
// "example.org".
constexpr size_t kLongestDotted = 2;

// Letters after an apostrophe that belong to the word before. In a tokenized text they are a word.
constexpr std::array<std::string_view, 7> kEndings = {"t", "s", "re", "ve", "ll", "d", "m"};

template <class Range>
bool Contains(const Range& range, std::string_view text) {
  return std::find(range.begin(), range.end(), text) != range.end();
}

// A word between white space, as offsets.
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

// A character of a word, an entity, a mark, or a byte that belongs to no character.
struct WordSymbol {
  enum class Kind : uint8_t { kLetter, kDigit, kAlone, kOther };
  size_t begin, end;
  Kind kind;
  char first;  // the first byte; for an entity its sign
};

WordSymbol::Kind KindOf(std::string_view character) {
  const char first = character[0];
  if (IsDigit(first)) return WordSymbol::Kind::kDigit;
  if (IsAsciiLetter(first)) return WordSymbol::Kind::kLetter;
  if (static_cast<unsigned char>(first) < 0x80) {
    return kMarksAlone.find(first) != kMarksAlone.npos ? WordSymbol::Kind::kAlone
                                                       : WordSymbol::Kind::kOther;
  }
  if (character.size() == 1) return WordSymbol::Kind::kLetter;
  const uint32_t code = CodePointOf(character);
  const bool alone = InRanges(kPunctuation, code) || InRanges(kAloneSymbols, code);
  return alone ? WordSymbol::Kind::kAlone : WordSymbol::Kind::kLetter;
}

// The first symbol of a text.
WordSymbol SymbolAt(std::string_view text, const Marks& marks) {
  if (const size_t length = marks.LengthAt(text)) {
    return {0, length, WordSymbol::Kind::kLetter, text[0]};
  }
  if (text[0] == '&') {
    for (const Entity& entity : kEntities) {
      if (!text.starts_with(entity.spelling)) continue;
      const char& sign = entity.sign;
      return {0, entity.spelling.size(), KindOf({&sign, 1}), sign};
    }
  }
  const size_t length = UnitLength(text);
  return {0, length, KindOf(text.substr(0, length)), text[0]};
}

// Whether a word is one that Moses writes for a sign inside a word: @-@, @,@, @/@.
bool IsJoiner(std::string_view word) {
  return word.size() > 2 && word.front() == '@' && word.back() == '@' &&
         UnitLength(word.substr(1)) == word.size() - 2;
}

class WikiTextSplitter {
 public:
  WikiTextSplitter(std::string_view text, const Marks& marks, TokenizedText& tokenized)
      : text_(text), marks_(marks), tokenized_(tokenized) {}

  // Appends the tokens of the text, whose first word is the line's word `at`.
  void TokenizeText(const WikiTextLine& line, uint64_t& at) {
    for (const Word& word : SplitAtSpaces(text_)) {
      if (line.was_tokenized() || IsJoiner(text_.substr(word.begin, word.end - word.begin))) {
        Put(word.begin, word.end);
      } else {
        may_open_ = at == 0 || at < line.quotes_end;
        SplitWord(word, at + 1 == line.words);
      }
      ++at;
    }
  }

  void ReadText(WikiTextLine& line) {
    for (const Word& word : SplitAtSpaces(text_)) {
      const std::string_view text = text_.substr(word.begin, word.end - word.begin);
      ReadSymbols(word);
      ++line.words;
      if (ClosesQuotation()) line.quotes_end = line.words;
      const bool escaped = symbols_.size() == 1 && Contains(kSigns, std::string(1, First(0)));
      if (escaped || IsJoiner(text) || Contains(kSigns, text)) {
        line.has_sign_alone = true;
        continue;
      }
      for (size_t i = 0; symbols_.size() > 1 && i < symbols_.size(); ++i) {
        const bool joined = IsKind(i, WordSymbol::Kind::kAlone) && !JoinsDigits(i);
        line.has_sign_joined = line.has_sign_joined || joined;
      }
    }
  }

 private:
  void ReadSymbols(const Word& word) {
    symbols_.clear();
    end_ = word.end;
    for (size_t at = word.begin; at < word.end;) {
      WordSymbol symbol = SymbolAt(text_.substr(at, word.end - at), marks_);
      symbol.begin += at;
      at = symbol.end += at;
      symbols_.push_back(symbol);
    }
  }

  void Put(size_t begin, size_t end) {
    if (begin >= end) return;
    AppendToken(kNoPieceId, static_cast<uint32_t>(begin), static_cast<uint32_t>(end),
                text_.substr(begin, end - begin), tokenized_);
  }

  void PutJoiner(size_t at) {
    const std::array<char, 3> joiner = {'@', text_[at], '@'};
    AppendToken(kNoPieceId, static_cast<uint32_t>(at), static_cast<uint32_t>(at + 1),
                std::string_view(joiner.data(), joiner.size()), tokenized_);
  }

  // Whether the word ends with an apostrophe, or with one and marks after it.
  bool ClosesQuotation() const {
    size_t last = symbols_.size();
    while (last > 0 && kClosing.find(First(last - 1)) != kClosing.npos) last -= 1;
    return last > 0 && First(last - 1) == '\'';
  }

  // The offset of a symbol of the word; the word's end for the symbol after the last one.
  size_t Offset(size_t symbol) const {
    return symbol < symbols_.size() ? symbols_[symbol].begin : end_;
  }
  char First(size_t symbol) const { return symbols_[symbol].first; }
  bool IsWordSymbol(size_t symbol) const {
    return symbols_[symbol].kind == WordSymbol::Kind::kLetter ||
           symbols_[symbol].kind == WordSymbol::Kind::kDigit;
  }
  bool IsKind(size_t symbol, WordSymbol::Kind kind) const { return symbols_[symbol].kind == kind; }

  // Whether the full stop after symbols [begin, end) belongs to them. `last` tells that the full
  // stop ends the line, where WikiText keeps that of "U.S." and of "B.", but not that of "etc".
  bool KeepsStop(size_t begin, size_t end, bool last) const {
    const std::string_view word = text_.substr(Offset(begin), Offset(end) - Offset(begin));
    const bool initial = word.size() == 1 && IsUpper(word[0]);
    const size_t dot = word.rfind('.');
    const bool dotted =
        dot != word.npos && dot + kLongestDotted >= word.size() - 1 && !IsDigit(word.back());
    return initial || dotted || (!last && Contains(kAbbreviations, word));
  }

  bool JoinsDigits(size_t i) const {
    return (First(i) == ',' || First(i) == '.') && i > 0 && i + 1 < symbols_.size() &&
           IsKind(i - 1, WordSymbol::Kind::kDigit) && IsKind(i + 1, WordSymbol::Kind::kDigit);
  }
  // The number of symbols from `i` on that are always one token: 1 for a mark, the number of
  // several full stops, or 0.
  size_t AloneFrom(size_t i) const {
    if (IsKind(i, WordSymbol::Kind::kAlone)) return JoinsDigits(i) ? 0 : 1;
    size_t dots = i;
    while (dots < symbols_.size() && First(dots) == '.') dots += 1;
    return dots - i > 1 ? dots - i : 0;
  }

  // Splits a word, which consists of runs of symbols between symbols that stand alone. Each run is
  // split like a word of its own, so that tokenizing the result again changes nothing.
  void SplitWord(const Word& word, bool last) {
    ReadSymbols(word);
    size_t last_run = symbols_.size();  // the last run begins here or later
    while (last_run > 0 &&
           (IsKind(last_run - 1, WordSymbol::Kind::kAlone) || First(last_run - 1) == '.'))
      last_run -= 1;
    for (size_t i = 0; i < symbols_.size();) {
      const size_t begin = i;
      size_t alone = 0;
      while (i < symbols_.size() && (alone = AloneFrom(i)) == 0) i += 1;
      if (i > begin) SplitRun(begin, i, last && i >= last_run);
      Put(Offset(i), Offset(i + alone));
      i += alone;
    }
  }

  // Whether an apostrophe at symbol `i` of [begin, end) begins a token.
  bool SplitsAtApostrophe(size_t i, size_t begin, size_t end) const {
    if (i == begin || i + 1 == end) return true;
    if (IsKind(i - 1, WordSymbol::Kind::kDigit)) return First(i + 1) == 's';
    return IsKind(i - 1, WordSymbol::Kind::kLetter) && IsKind(i + 1, WordSymbol::Kind::kLetter);
  }
  // Whether an apostrophe at symbol `i` of [begin, end) that begins a token is a token of its own:
  // at a word's end, and before a word that it quotes. In a tokenized text "'Brien" is the second
  // half of a name.
  bool StandsAlone(size_t i, size_t begin, size_t end) const {
    if (i + 1 == end) return true;
    if (i > begin) return false;
    if (!IsKind(i + 1, WordSymbol::Kind::kLetter)) return true;
    const size_t next = Offset(i + 1);
    return may_open_ && !Contains(kEndings, text_.substr(next, Offset(end) - next));
  }

  // Splits the run of symbols [begin, end). `last` tells that only marks and full stops follow the
  // run in the line.
  void SplitRun(size_t begin, size_t end, bool last) {
    const size_t stop = First(end - 1) == '.' ? end - 1 : end;
    size_t from = begin;
    for (size_t i = begin; i < stop; ++i) {
      const bool hyphen = First(i) == '-' && i > begin && i + 1 < stop && IsWordSymbol(i - 1) &&
                          IsWordSymbol(i + 1);
      if (hyphen || JoinsDigits(i)) {
        Put(Offset(from), Offset(i));
        PutJoiner(Offset(i));
        from = i + 1;
      } else if (First(i) == '\'' && SplitsAtApostrophe(i, from, stop)) {
        const bool alone = StandsAlone(i, from, stop);
        Put(Offset(from), Offset(i));
        if (alone) Put(Offset(i), Offset(i + 1));
        from = alone ? i + 1 : i;  // the next token keeps the apostrophe: 's, 't
      }
    }
    const size_t kept = KeepsStop(from, stop, last) ? end : stop;
    Put(Offset(from), Offset(kept));
    Put(Offset(kept), Offset(end));
  }

  std::string_view text_;
  const Marks& marks_;
  TokenizedText& tokenized_;
  std::vector<WordSymbol> symbols_;  // the symbols of the current word, which ends before end_
  size_t end_ = 0;
  bool may_open_ = false;  // an apostrophe before a word may open a quotation
};

}  // namespace

void ReadWikiText(std::string_view text, const Marks& marks, WikiTextLine& line) {
  TokenizedText unused;
  WikiTextSplitter(text, marks, unused).ReadText(line);
}

Result<TokenizedText> SplitByRule(WordRule::Rule rule, std::string_view text, const Marks& marks,
                                  TextPart& part) {
  if (text.size() >= kMaxTextBytes) return RefuseLongText(text.size());
  TokenizedText tokenized;
  const auto put = [&](size_t begin, size_t end) {
    AppendToken(kNoPieceId, static_cast<uint32_t>(begin), static_cast<uint32_t>(end),
                text.substr(begin, end - begin), tokenized);
  };
  switch (rule) {
    case WordRule::Rule::kSpaces:
      for (const Word& word : SplitAtSpaces(text)) put(word.begin, word.end);
      break;
    case WordRule::Rule::kWikiText: {
      WikiTextLine whole;
      if (part.line == nullptr) ReadWikiText(text, marks, whole);
      WikiTextSplitter(text, marks, tokenized)
          .TokenizeText(part.line == nullptr ? whole : *part.line, part.words);
      break;
    }
    case WordRule::Rule::kCharacters:
      for (size_t at = 0; at < text.size();) {
        const size_t end = at + UnitLength(text.substr(at));
        put(at, end);
        at = end;
      }
      break;
  }
  return tokenized;
}

bool IsSplitFromWord(std::string_view word) {
  if (word.empty()) return false;
  const WordSymbol first = SymbolAt(word, {});
  return first.first == '\'' && first.end < word.size() &&
         SymbolAt(word.substr(first.end), {}).kind == WordSymbol::Kind::kLetter;
}

}  // namespace kinglet

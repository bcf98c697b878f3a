#include "converters/texts/corpus_text.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

#include "converters/texts/case_ranges.h"
#include "format/utf8.h"
#include "runtime/text/lower_case.h"
#include "runtime/text/unicode_ranges.h"
#include "runtime/text/white_space.h"
#include "runtime/text/without_accents.h"

namespace kinglet {
namespace {

using Codes = std::u32string;

// A byte that belongs to no character has a code beyond Unicode.
constexpr uint32_t kFirstByte = 0x110000;

// The zeros of Unicode 14's decimal digits (Nd), each before its other nine.
constexpr uint32_t kZeros[] = {
    0x30,    0x660,   0x6f0,   0x7c0,   0x966,   0x9e6,   0xa66,   0xae6,   0xb66,   0xbe6,
    0xc66,   0xce6,   0xd66,   0xde6,   0xe50,   0xed0,   0xf20,   0x1040,  0x1090,  0x17e0,
    0x1810,  0x1946,  0x19d0,  0x1a80,  0x1a90,  0x1b50,  0x1bb0,  0x1c40,  0x1c50,  0xa620,
    0xa8d0,  0xa900,  0xa9d0,  0xa9f0,  0xaa50,  0xabf0,  0xff10,  0x104a0, 0x10d30, 0x11066,
    0x110f0, 0x11136, 0x111d0, 0x112f0, 0x11450, 0x114d0, 0x11650, 0x116c0, 0x11730, 0x118e0,
    0x11950, 0x11c50, 0x11d50, 0x11da0, 0x16a60, 0x16ac0, 0x16b50, 0x1d7ce, 0x1d7d8, 0x1d7e2,
    0x1d7ec, 0x1d7f6, 0x1e140, 0x1e2f0, 0x1e950, 0x1fbf0};

// What other punctuation becomes.
constexpr std::pair<uint32_t, std::string_view> kPunctuationInAscii[] = {
    {0xB4, "'"},    {0xAB, "\""},   {0xBB, "\""},   {0x2013, "-"},  {0x2014, " - "},
    {0x2019, "'"},  {0x201C, "\""}, {0x201D, "\""}, {0x201E, "\""}, {0x2026, "..."},
    {0x2236, ":"},  {0x2501, "-"},  {0x25BA, "-"},  {0x3001, ","},  {0x3002, "."},
    {0x3008, "<"},  {0x3009, ">"},  {0x300A, "\""}, {0x300B, "\""}, {0x300C, "\""},
    {0x300D, "\""}, {0x3010, "["},  {0x3011, "]"},  {0xFF01, "!"},  {0xFF05, "%"},
    {0xFF08, "("},  {0xFF09, ")"},  {0xFF0C, ","},  {0xFF0E, ". "}, {0xFF11, "\""},
    {0xFF1A, ":"},  {0xFF1B, ";"},  {0xFF1F, "?"},  {0xFF5E, "~"},
};

Codes CodesOf(std::string_view text) {
  Codes codes;
  while (!text.empty()) {
    const size_t length = CharacterLength(text);
    codes +=
        static_cast<char32_t>(length > 0 ? CodePointOf(text.substr(0, length))
                                         : kFirstByte + static_cast<unsigned char>(text.front()));
    text.remove_prefix(length > 0 ? length : 1);
  }
  return codes;
}

bool IsSpace(char32_t code) {
  if (code >= kFirstByte) return false;
  std::string text;
  AppendCodePoint(code, text);
  return SpaceLength(text) > 0;
}

void Strip(Codes& codes) {
  while (!codes.empty() && IsSpace(codes.back())) codes.pop_back();
  codes.erase(codes.begin(), std::find_if_not(codes.begin(), codes.end(), IsSpace));
}

bool EndsWord(const Codes& codes, size_t sigma) {
  size_t before = sigma, after = sigma + 1;
  while (before > 0 && InRanges(kCaseIgnorable, codes[before - 1])) --before;
  while (after < codes.size() && InRanges(kCaseIgnorable, codes[after])) ++after;
  return before > 0 && InRanges(kCased, codes[before - 1]) &&
         (after == codes.size() || !InRanges(kCased, codes[after]));
}

Codes InLowerCase(const Codes& codes) {
  constexpr char32_t kDottedI = 0x130, kDot = 0x307, kSigma = 0x3A3, kFinalSigma = 0x3C2;
  Codes lower;
  for (size_t i = 0; i < codes.size(); ++i) {
    if (codes[i] == kDottedI) {
      lower += {U'i', kDot};
    } else if (codes[i] == kSigma && EndsWord(codes, i)) {
      lower += kFinalSigma;
    } else {
      lower += codes[i] < kFirstByte ? LowerCase(codes[i]) : codes[i];
    }
  }
  return lower;
}

Codes WithoutAccents(const Codes& codes) {
  Codes bases;
  for (const char32_t code : codes) {
    if (code >= kFirstByte) {
      bases += code;
    } else {
      ForEachBase(code, [&bases](uint32_t base) { bases += static_cast<char32_t>(base); });
    }
  }
  return bases;
}

bool IsDigit(char32_t code) {
  const auto* after = std::upper_bound(std::begin(kZeros), std::end(kZeros), code);
  return after != std::begin(kZeros) && code - *std::prev(after) < 10;
}

bool IsDecimalPoint(char32_t code) {
  return code == '.' || code == ',' || code == 0x60C || code == 0x66B ||
         (code >= 0x2396 && code <= 0x2398);
}

// A 0 for each number, which may have a point and digits after it.
Codes WithZeroNumbers(const Codes& codes) {
  Codes made;
  for (size_t i = 0; i < codes.size();) {
    if (!IsDigit(codes[i])) {
      made += codes[i++];
      continue;
    }
    made += U'0';
    const auto skip_digits = [&] {
      while (i < codes.size() && IsDigit(codes[i])) ++i;
    };
    skip_digits();
    if (i + 1 < codes.size() && IsDecimalPoint(codes[i]) && IsDigit(codes[i + 1])) {
      ++i;
      skip_digits();
    }
  }
  return made;
}

// Appends the codes in UTF-8, without control characters and with ASCII's punctuation.
void AppendPlain(const Codes& codes, std::string& text) {
  for (const char32_t code : codes) {
    if (code >= kFirstByte) {
      text += static_cast<char>(code - kFirstByte);
      continue;
    }
    const auto* const ascii =
        std::find_if(std::begin(kPunctuationInAscii), std::end(kPunctuationInAscii),
                     [code](const auto& candidate) { return candidate.first == code; });
    if (code >= 0x80 && ascii != std::end(kPunctuationInAscii)) {
      text += ascii->second;
    } else if (code >= 0x20 && !(code >= 0x7F && code < 0xA0)) {
      AppendCodePoint(code, text);
    }
  }
}

void AppendLine(std::string_view line, CorpusRules rules, std::string& text) {
  Codes codes = CodesOf(line);
  if (rules == CorpusRules::kCcnet) {
    Strip(codes);
    codes = WithoutAccents(InLowerCase(codes));
    for (char32_t& code : codes) code = IsDigit(code) ? U'0' : code;
  } else {
    codes = WithoutAccents(WithZeroNumbers(InLowerCase(codes)));
    Strip(codes);
  }
  AppendPlain(codes, text);
}

}  // namespace

std::string CorpusText(std::string_view text, CorpusRules rules) {
  std::string made;
  for (size_t end; (end = text.find('\n')) != text.npos; text.remove_prefix(end + 1)) {
    AppendLine(text.substr(0, end), rules, made);
    made += '\n';
  }
  AppendLine(text, rules, made);
  return made;
}

}  // namespace kinglet

#include "runtime/typing/letters.h"

#include "format/utf8.h"
#include "runtime/text/lower_case.h"
#include "runtime/text/unicode_ranges.h"
#include "runtime/text/white_space.h"
#include "runtime/text/without_accents.h"

namespace kinglet::typing {
namespace {

// Calls visit(code) for each character.
template <class Visit>
void ForEachCharacter(std::string_view text, const Visit& visit) {
  while (!text.empty()) {
    const size_t length = CharacterLength(text);
    if (length == 0) {
      visit(kByte + static_cast<unsigned char>(text.front()));
    } else {
      visit(static_cast<char32_t>(CodePointOf(text.substr(0, length))));
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
}

void AppendLetter(char32_t letter, std::string& text) {
  if (letter >= kByte) {
    text += static_cast<char>(letter - kByte);
  } else {
    AppendCodePoint(letter, text);
  }
}

}  // namespace

Letters LowerLetters(std::string_view text) {
  Letters letters;
  letters.reserve(text.size());
  ForEachCharacter(text, [&](char32_t code) { letters.push_back(LowerCase(code)); });
  return letters;
}

std::string TextOf(const Letters& letters) {
  std::string text;
  for (const char32_t letter : letters) AppendLetter(letter, text);
  return text;
}

char32_t WithoutAccent(char32_t letter) {
  char32_t base = letter;
  int parts = 0;
  ForEachBase(letter, [&](uint32_t part) {
    base = part;
    ++parts;
  });
  return parts == 1 ? base : letter;
}

bool IsOptional(char32_t letter) {
  return letter == '\'' || letter == '-' || letter == 0x2019 || letter == 0x2010;
}

bool IsWordLetter(char32_t letter) {
  if (letter < 0x80) {
    return (letter >= '0' && letter <= '9') || (letter >= 'A' && letter <= 'Z') ||
           (letter >= 'a' && letter <= 'z');
  }
  // Signs of Latin-1; general punctuation, currency, arrows, mathematics and other symbols.
  if (letter <= 0xBF) return letter == 0xAA || letter == 0xB5 || letter == 0xBA;
  if (letter == 0xD7 || letter == 0xF7 || letter >= kByte) return false;
  if (letter >= 0x2000 && letter <= 0x2BFF) return false;
  std::string text;
  AppendCodePoint(letter, text);
  return SpaceLength(text) == 0 && !InRanges(kPunctuation, letter);
}

Letters PlainLetters(std::string_view text) {
  Letters letters;
  ForEachCharacter(text, [&](char32_t code) {
    const char32_t lower = WithoutAccent(LowerCase(code));
    if (!IsOptional(lower)) letters += lower;
  });
  return letters;
}

std::string WithCapitals(std::string_view text, Capitals capitals) {
  if (capitals == Capitals::kAsWritten) return std::string(text);
  std::string out;
  ForEachCharacter(text, [&](char32_t code) {
    const bool raises = capitals == Capitals::kAll || out.empty();
    AppendLetter(raises ? UpperCase(code) : code, out);
  });
  return out;
}

}  // namespace kinglet::typing

#include "converters/texts/text_size.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>

#include "runtime/text/white_space.h"
#include "runtime/text/word_merges.h"
#include "runtime/text/word_pieces.h"

namespace kinglet {
namespace {

constexpr std::string_view kSpaceToken = "<space>";
constexpr std::array<PieceMarks, 7> kPieceMarks = {{
    {.mark = kJoinMark, .joins_next = true},                           // lo@@ w@@ er: subword-nmt
    {.mark = kContinues, .joins_last = true},                          // low ##er: WordPiece
    {.mark = "\xEF\xBF\xAD", .joins_last = true, .joins_next = true},  // low \uFFEDer: OpenNMT
    {.mark = "\xE2\x96\x81", .is_space = true},  // \u2581low er: SentencePiece
    {.mark = "\xC4\xA0", .is_space = true},      // \u0120low er: GPT-2
    {.mark = "</w>", .is_space = true},          // low er</w>: GPT
    {.mark = kSpaceToken, .is_space = true},     // l o w <space>: ESPnet
}};

bool IsMarked(std::string_view word, const PieceMarks& marks) {
  if (marks.is_space) return word.find(marks.mark) != word.npos;
  return word.size() > marks.mark.size() && ((marks.joins_last && word.starts_with(marks.mark)) ||
                                             (marks.joins_next && word.ends_with(marks.mark)));
}

// The words between white space.
template <class Take>
void ForEachWord(std::string_view line, const Take& take) {
  while (!line.empty()) {
    size_t end = 0, space = 0;
    while (end < line.size() && (space = SpaceLength(line.substr(end))) == 0) ++end;
    if (end > 0) take(line.substr(0, end));
    line.remove_prefix(end + space);
  }
}

}  // namespace

TextSize SizeOfLine(std::string_view line) {
  TextSize size;
  size.bytes = line.size();
  for (const char c : line) size.characters += ContinuesCharacter(c) ? 0 : 1;
  for (bool in_word = false; !line.empty();) {
    const size_t space = SpaceLength(line);
    if (space == 0 && !in_word) ++size.words;
    in_word = space == 0;
    line.remove_prefix(space == 0 ? 1 : space);
  }
  return size;
}

PieceMarks PieceMarksOf(const Vocabulary& vocabulary) {
  constexpr uint64_t kShare = 20;
  std::array<uint64_t, kPieceMarks.size()> marked = {};
  uint64_t characters = 0;
  for (uint32_t id = 0; id < vocabulary.size(); ++id) {
    const std::string word(vocabulary.Word(id));
    characters += SizeOfLine(word).characters == 1 ? 1 : 0;
    for (size_t i = 0; i < marked.size(); ++i) {
      marked[i] += IsMarked(word, kPieceMarks[i]) ? 1 : 0;
    }
  }
  // One token is the space of a vocabulary of characters.
  if (marked.back() > 0 && characters * 2 > vocabulary.size()) marked.back() = vocabulary.size();
  const auto commonest = std::max_element(marked.begin(), marked.end());
  return *commonest * kShare > vocabulary.size()
             ? kPieceMarks[static_cast<size_t>(commonest - marked.begin())]
             : PieceMarks();
}

TextSize SizeOfPieces(std::string_view line, const PieceMarks& marks) {
  if (marks.mark.empty()) return SizeOfLine(line);
  std::string text;
  bool joins = true;
  ForEachWord(line, [&](std::string_view piece) {
    if (marks.is_space) {
      for (size_t mark; (mark = piece.find(marks.mark)) != piece.npos;) {
        text += piece.substr(0, mark);
        text += ' ';
        piece.remove_prefix(mark + marks.mark.size());
      }
      text += piece;
      return;
    }
    const bool joins_last = marks.joins_last && piece.starts_with(marks.mark);
    if (joins_last) piece.remove_prefix(marks.mark.size());
    const bool joins_next = marks.joins_next && piece.ends_with(marks.mark);
    if (joins_next) piece.remove_suffix(marks.mark.size());
    if (!joins && !joins_last) text += ' ';
    text += piece;
    joins = joins_next;
  });
  // The mark of the first word, or of the last one where marks end words, is no space of the text.
  std::string_view inside = text;
  if (marks.is_space && inside.starts_with(' ')) {
    inside.remove_prefix(1);
  } else if (marks.is_space && inside.ends_with(' ')) {
    inside.remove_suffix(1);
  }
  return SizeOfLine(inside);
}

bool IsBetweenWords(std::string_view before, std::string_view after, const PieceMarks& marks) {
  while (const size_t space = LastSpaceLength(before)) before.remove_suffix(space);
  const bool ends = before.ends_with(marks.mark), begins = after.starts_with(marks.mark);
  const bool is_cut = after.size() < marks.mark.size() && marks.mark.starts_with(after);
  if (marks.is_space && marks.ends_words()) return ends && !begins && !is_cut;
  if (marks.is_space) return begins && !ends;
  return !(marks.joins_next && ends) && !(marks.joins_last && (begins || is_cut));
}

}  // namespace kinglet

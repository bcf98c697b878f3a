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

constexpr std::string_view kWordStartMark = "\xE2\x96\x81";

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
  std::array<uint64_t, 4> marked = {};
  for (uint32_t id = 0; id < vocabulary.size(); ++id) {
    const std::string word(vocabulary.Word(id));
    if (word.size() > kJoinMark.size() && word.ends_with(kJoinMark)) {
      ++marked[static_cast<size_t>(PieceMarks::kJoinsNext)];
    } else if (word.starts_with(kWordStartMark)) {
      ++marked[static_cast<size_t>(PieceMarks::kWordStart)];
    } else if (word.size() > kContinues.size() && word.starts_with(kContinues)) {
      ++marked[static_cast<size_t>(PieceMarks::kInside)];
    }
  }
  const auto commonest = std::max_element(marked.begin(), marked.end());
  constexpr uint64_t kShare = 20;
  return *commonest * kShare > vocabulary.size()
             ? static_cast<PieceMarks>(commonest - marked.begin())
             : PieceMarks::kNone;
}

TextSize SizeOfPieces(std::string_view line, PieceMarks marks) {
  if (marks == PieceMarks::kNone) return SizeOfLine(line);
  std::string text;
  bool joins = true;
  ForEachWord(line, [&](std::string_view piece) {
    if (marks == PieceMarks::kWordStart) {
      for (size_t mark; (mark = piece.find(kWordStartMark)) != piece.npos;) {
        text += piece.substr(0, mark);
        text += ' ';
        piece.remove_prefix(mark + kWordStartMark.size());
      }
      text += piece;
      return;
    }
    const bool continues = marks == PieceMarks::kInside && piece.starts_with(kContinues);
    const bool joins_next = marks == PieceMarks::kJoinsNext && piece.ends_with(kJoinMark);
    if (!joins && !continues) text += ' ';
    if (continues) piece.remove_prefix(kContinues.size());
    if (joins_next) piece.remove_suffix(kJoinMark.size());
    text += piece;
    joins = joins_next;
  });
  // SentencePiece puts a space before the first word.
  const bool spaced = marks == PieceMarks::kWordStart && text.starts_with(' ');
  return SizeOfLine(std::string_view(text).substr(spaced ? 1 : 0));
}

bool IsBetweenWords(std::string_view before, std::string_view after, PieceMarks marks) {
  while (const size_t space = LastSpaceLength(before)) before.remove_suffix(space);
  if (marks == PieceMarks::kJoinsNext) return !before.ends_with(kJoinMark);
  return after.starts_with(marks == PieceMarks::kInside ? kContinues : kWordStartMark) ==
         (marks == PieceMarks::kWordStart);
}

}  // namespace kinglet

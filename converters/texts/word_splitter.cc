#include "converters/texts/word_splitter.h"

#include <algorithm>
#include <array>
#include <utility>

#include "runtime/text/plain_text.h"

namespace kinglet {
namespace {

using std::string_view_literals::operator""sv;

// The first bytes of white space beyond ASCII in UTF-8.
constexpr std::array kSpaceBeginnings = {"\xC2"sv,     "\xE1"sv,     "\xE2"sv,     "\xE3"sv,
                                         "\xE1\x9A"sv, "\xE2\x80"sv, "\xE2\x81"sv, "\xE3\x80"sv};

}  // namespace

std::string_view WithoutByteOrderMark(std::string_view text) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  return text;
}

void WordSplitter::Keep(std::string_view text) {
  word_.append(text.substr(0, kept_ - word_.size()));
}

Status WordSplitter::EndWord(std::string_view tail, const WordSink& sink) {
  if (word_.empty()) return tail.empty() ? Status() : sink(tail.substr(0, kept_), line_);
  Keep(tail);
  const std::string word = std::exchange(word_, std::string());
  return sink(word, line_);
}

size_t WordSplitter::OpenSpaceBytes(std::string_view piece) const {
  for (size_t count = std::min<size_t>(kLongestSpace - 1, piece.size()); count > 0; --count) {
    const std::string_view end = piece.substr(piece.size() - count);
    if (kSpaceBeginnings.end() !=
        std::find(kSpaceBeginnings.begin(), kSpaceBeginnings.end(), end)) {
      return count;
    }
  }
  return 0;
}

Status WordSplitter::Add(std::string_view piece, const WordSink& sink) {
  std::string joined;
  if (!open_space_.empty()) {
    joined = std::exchange(open_space_, std::string()).append(piece);
    piece = joined;
  }
  const size_t open_bytes = OpenSpaceBytes(piece);
  open_space_ = piece.substr(piece.size() - open_bytes);
  piece.remove_suffix(open_bytes);
  if (piece.empty()) return Status();
  return Split(piece, sink);
}

Status WordSplitter::Split(std::string_view piece, const WordSink& sink) {
  size_t begin = 0;
  for (size_t at = 0; at < piece.size();) {
    const size_t space = SpaceLength(piece.substr(at));
    if (space == 0) {
      ++at;
      continue;
    }
    KINGLET_RETURN_IF_ERROR(EndWord(piece.substr(begin, at - begin), sink));
    begin = at + space;
    open_line_ = piece[at] != '\n';
    if (!open_line_) KINGLET_RETURN_IF_ERROR(sink(kEndOfLine, line_++));
    at = begin;
  }
  Keep(piece.substr(begin));
  open_line_ = open_line_ || begin < piece.size();
  return Status();
}

Status WordSplitter::Finish(const WordSink& sink) {
  // The text has ended, so these bytes are no white space.
  const std::string rest = std::exchange(open_space_, std::string());
  KINGLET_RETURN_IF_ERROR(Split(rest, sink));
  KINGLET_RETURN_IF_ERROR(EndWord("", sink));
  if (!std::exchange(open_line_, false)) return Status();
  return sink(kEndOfLine, line_++);
}

}  // namespace kinglet

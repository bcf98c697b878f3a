#include "converters/texts/word_splitter.h"

#include <utility>

namespace kinglet {

bool IsAsciiSpace(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r') || (c >= '\x1c' && c <= '\x1f');
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

Status WordSplitter::Add(std::string_view piece, const WordSink& sink) {
  size_t begin = 0;
  for (size_t at = 0; at < piece.size(); ++at) {
    if (!IsAsciiSpace(piece[at])) continue;
    KINGLET_RETURN_IF_ERROR(EndWord(piece.substr(begin, at - begin), sink));
    begin = at + 1;
    open_line_ = piece[at] != '\n';
    if (!open_line_) KINGLET_RETURN_IF_ERROR(sink(kEndOfLine, line_++));
  }
  Keep(piece.substr(begin));
  open_line_ = open_line_ || begin < piece.size();
  return Status();
}

Status WordSplitter::Finish(const WordSink& sink) {
  KINGLET_RETURN_IF_ERROR(EndWord("", sink));
  if (!std::exchange(open_line_, false)) return Status();
  return sink(kEndOfLine, line_++);
}

}  // namespace kinglet

// Removes bytes of text files that are no text: byte order marks (U+FEFF) where a line begins, and
// carriage returns before a line's end. All code that reads text ignores these bytes, so that a
// file, a pipe and a text in memory give the same tokens.
#ifndef KINGLET_RUNTIME_TEXT_PLAIN_TEXT_H_
#define KINGLET_RUNTIME_TEXT_PLAIN_TEXT_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kinglet {

inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// A line (or a text that ends without "\n") without its "\n", the marks at its beginning and the
// carriage returns at its end.
std::string_view PlainLine(std::string_view line);

// Removes marks and carriage returns from a text that comes in pieces.
class PlainPieces {
 public:
  // The text of the next bytes, which may be empty; valid until the next call.
  std::string_view Add(std::string_view piece);
  // Returns the text that was kept back, once the text has ended.
  std::string_view Finish();

 private:
  std::string made_;
  std::string kept_;  // the beginning of a mark, or carriage returns
  bool line_begins_ = true;
};

// A text of any number of lines without marks and carriage returns, and the origins of its bytes.
class PlainText {
 public:
  explicit PlainText(std::string_view original);
  const std::string& text() const { return text_; }
  // The offset in the original of the byte at `offset`; for the text's end, the offset after its
  // last byte.
  size_t Begin(size_t offset) const;
  // The offset in the original after the byte before `offset`.
  size_t End(size_t offset) const { return offset == 0 ? Begin(0) : Begin(offset - 1) + 1; }

 private:
  std::string text_;
  // Pairs of an offset of the text and the number of bytes omitted before it; ascending.
  std::vector<std::pair<size_t, size_t>> excluded_;
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_TEXT_PLAIN_TEXT_H_

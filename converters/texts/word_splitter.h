// Running text as words, split as the frameworks' readers split it.
#ifndef KINGLET_CONVERTERS_TEXTS_WORD_SPLITTER_H_
#define KINGLET_CONVERTERS_TEXTS_WORD_SPLITTER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "kinglet/status.h"
#include "runtime/text/white_space.h"

namespace kinglet {

// The word for the end of a line. In a vocabulary without it, such as a fairseq dictionary,
// kSentenceEnd is used instead.
inline constexpr std::string_view kEndOfLine = "<eos>";
inline constexpr std::string_view kSentenceEnd = "</s>";

// `text` without the byte order mark at its start, if there is one.
std::string_view WithoutByteOrderMark(std::string_view text);

// Takes one word and the number of its line, from 1. The word is valid during the call.
using WordSink = std::function<Status(std::string_view word, uint64_t line)>;

// Splits text that comes in pieces. Each line is split at white space (SpaceLength) and kEndOfLine
// follows; a blank line gives kEndOfLine alone; a last line without newline counts, an empty one
// after the last newline does not. Lines end with '\n' ('\r' is white space; Python, which reads a
// lone '\r' as the end of a line, differs there).
class WordSplitter {
 public:
  static constexpr size_t kLongestWord = 65'535;  // bytes of a word in a vocabulary
  // Only the first `kept` bytes of a word are kept, which bounds the memory. The default is one
  // byte more than any vocabulary's word has, so that a truncated word is in no vocabulary.
  explicit WordSplitter(size_t kept = kLongestWord + 1) : kept_(kept) {}

  // The first error of `sink` ends the call and is returned.
  Status Add(std::string_view piece, const WordSink& sink);
  // To be called when the text has ended.
  Status Finish(const WordSink& sink);

 private:
  // The number of bytes at the end of a piece that may be the beginning of a white space character,
  // which the splitter needs complete.
  size_t OpenSpaceBytes(std::string_view piece) const;
  Status Split(std::string_view piece, const WordSink& sink);
  void Keep(std::string_view text);
  // Passes the current word, which ends with `tail`, to `sink` unless the word is empty.
  Status EndWord(std::string_view tail, const WordSink& sink);

  size_t kept_;
  std::string word_;        // the bytes of the current word from earlier pieces
  std::string open_space_;  // the OpenSpaceBytes of the last piece
  bool open_line_ = false;  // something follows the last newline
  uint64_t line_ = 1;
};

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_TEXTS_WORD_SPLITTER_H_

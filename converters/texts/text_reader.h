// Text as ids of a model's vocabulary. Every command and pass that reads a text uses TextReader.
// Ids are in the order in which the model reads them: for a model that reads backward, a text's
// last token comes first.
#ifndef KINGLET_CONVERTERS_TEXTS_TEXT_READER_H_
#define KINGLET_CONVERTERS_TEXTS_TEXT_READER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "converters/texts/text_size.h"
#include "format/vocabulary.h"
#include "kinglet/status.h"
#include "runtime/text/model_text.h"
#include "runtime/text/text_splits.h"

namespace kinglet {

// How unknown words were typed.
class TypedWords {
 public:
  // REQUIRES: `position` is above all positions added before.
  void Add(uint64_t position, std::string_view text);
  // Empty where the token is a word of the vocabulary.
  std::string_view At(uint64_t position) const;

 private:
  struct Place {
    uint64_t position;
    size_t begin, bytes;  // in text_
  };
  std::vector<Place> places_;
  std::string text_;
};

struct TokenSequence {
  std::vector<uint32_t> ids;  // each below the vocabulary's size
  uint64_t unknown = 0;       // tokens for which the vocabulary has no word
  TypedWords typed;           // the texts of the unknown tokens
  // Size of the text, including ends of lines that are tokens; and of its first token. nullopt: the
  // text is not known.
  std::optional<TextSize> size, first_size;
};

class TextReader {
 public:
  // Takes the tokens of a part of a long line, and may empty the sequence.
  using Flush = std::function<Status(TokenSequence&)>;

  // Lines are tokenized by `text`. `origin` names the text in messages. Without `marks` they are
  // those of the vocabulary, which is read for them; where many readers are made and no size is
  // asked for, PieceMarks() does. REQUIRES: `text` outlives the reader.
  TextReader(const ModelText& text, std::string origin, Flush flush = {},
             std::optional<PieceMarks> marks = {});

  // Appends the tokens of the text's next bytes, and at each line's end its word: the first of
  // <eos>, </s>, <sos/eos> and a newline that the vocabulary has, if it has one. A long line is
  // tokenized in parts, with the same tokens, once it has ended for `wikitext` and while it is read
  // otherwise. Sizes of a text that is split into pieces already are sizes of the text before that.
  // Errors: KINGLET_UNKNOWN_WORD, naming
  // word and line, for a vocabulary without an unknown word; KINGLET_OUT_OF_MEMORY above 2^30
  // tokens; those of ModelText::Encode. For a model that reads backward nothing is appended before
  // Finish.
  Status Add(std::string_view piece, TokenSequence& out);
  // To be called when the text has ended: a last line may have no newline.
  Status Finish(TokenSequence& out);

  // Appends the tokens of a text of lines, without the word for the last line's end.
  Status AddText(std::string_view text, TokenSequence& out);
  // For a caller that splits lines itself: appends the tokens of one line. Then call EndLine, which
  // appends the word for the line's end, or NextLine, which appends nothing.
  Status AddLine(std::string_view line, TokenSequence& out);
  Status EndLine(TokenSequence& out);
  void NextLine();

 private:
  // What the public functions do, in the text's order.
  Status AddForward(std::string_view piece, TokenSequence& out);
  Status AddLineForward(std::string_view line, TokenSequence& out);
  // Appends the tokens that `read` appends, or their reverse for a model that reads backward.
  template <class Read>
  Status InReadingOrder(const Read& read, TokenSequence& out);
  // `typed`: the token's text.
  Status AddToken(uint32_t id, bool unknown, std::string_view typed, TokenSequence& out);
  // Adds the next part of a line, whose last one `ends` it.
  Status AddPart(std::string_view text, bool ends, TokenSequence& out);
  Status AddOpen(TokenSequence& out);
  size_t LastSplit(std::string_view text);
  // Calls visit(part, ends) for each part of a line.
  template <class Visit>
  Status ForEachPart(std::string_view line, const Visit& visit);
  Status InLine(const Status& status) const;

  const ModelText& text_;
  const std::string origin_;
  const std::optional<uint32_t> end_of_line_, unknown_;
  const PieceMarks marks_;  // of a text that is split into pieces already
  const Flush flush_;
  std::string open_;                  // the current line's bytes that are not read yet
  bool is_parted_ = false;            // parts of the current line were read
  bool in_word_ = false;              // the last of them ends inside a word
  TextPart part_;                     // the next one
  std::optional<TextSplits> splits_;  // made for the first long line
  uint64_t line_ = 1;
  TokenSequence whole_;  // the text so far, for a model that reads backward
  TextSize last_size_;   // of the last token of a text for a model that reads backward
};

// Reads a complete file. Errors: those of TextInput and TextReader.
Result<TokenSequence> ReadTextFile(const std::string& path, const ModelText& text);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_TEXTS_TEXT_READER_H_

// Token ids from text or number files, or from standard input as it is typed.
#ifndef KINGLET_TOOLS_WORDS_H_
#define KINGLET_TOOLS_WORDS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "converters/texts/word_splitter.h"
#include "format/vocabulary.h"
#include "kinglet/status.h"
#include "runtime/text/model_text.h"

namespace kinglet {

// The ids of words in a vocabulary. Unknown words become <unk> if the vocabulary has it; kEndOfLine
// becomes kSentenceEnd or a newline if the vocabulary has only that.
class WordLookup {
 public:
  // `vocabulary` must outlive this.
  explicit WordLookup(const Vocabulary& vocabulary);
  // KINGLET_UNKNOWN_WORD, naming the word and its line, if the vocabulary has neither the word nor
  // <unk>.
  Result<uint32_t> Find(std::string_view word, const std::string& source, uint64_t line);
  uint64_t unknown() const { return unknown_; }  // words that became <unk> so far

 private:
  const Vocabulary& vocabulary_;
  std::optional<uint32_t> end_of_line_, unknown_id_;
  uint64_t unknown_ = 0;
};

struct TokenSequence {
  std::vector<uint32_t> ids;  // each below the vocabulary's size
  uint64_t unknown = 0;       // words that became <unk>
};

// Says once on standard error that the text of `source` began with a byte order mark.
void NoteByteOrderMark(const WordSplitter& splitter, const std::string& source);

// Ids from a file of numbers (converters/texts/token_file.h), each checked to be below
// `vocabulary_size`.
Result<TokenSequence> ReadIdSequence(const std::string& path, uint32_t vocabulary_size);
// Ids of the words of a text file; "-" is standard input. Refuses a null `vocabulary`: a model that
// has ids only cannot read text. Lines are cut as `text` says; null: at white space.
Result<TokenSequence> ReadTextSequence(const std::string& path, const Vocabulary* vocabulary,
                                       const ModelText* text = nullptr);
// Appends the ids of a line and, unless it has no end yet, the word for that, where the vocabulary
// has one.
Status AppendTextLine(std::string_view line, const ModelText& text, TokenSequence& sequence,
                      bool ended = true);

// Reads a descriptor to its end and passes the bytes of each read(2) to `sink`. `source` names the
// input in messages. KINGLET_CANCELLED after Ctrl-C (tools/interrupt.h).
Status ReadPieces(int descriptor, const std::string& source,
                  const std::function<Status(std::string_view)>& sink);

// KINGLET_ID_OUT_OF_RANGE unless id < vocabulary_size. `where`: "position 3".
Status CheckTokenId(uint32_t id, uint32_t vocabulary_size, const std::string& source,
                    const std::string& where);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_WORDS_H_

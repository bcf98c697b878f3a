// The tokens of lines that come one by one.
#ifndef KINGLET_TOOLS_LINE_TOKENS_H_
#define KINGLET_TOOLS_LINE_TOKENS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kinglet/status.h"
#include "runtime/model.h"
#include "tools/words.h"

namespace kinglet {

// Cuts lines as the model file says; without that at white space, and without a vocabulary the
// words are ids.
class LineTokens {
 public:
  // `model` must outlive this. `source` names the text in messages.
  LineTokens(const Model& model, std::string_view source);

  // Appends the ids of the next line and, if it has `ended`, the word for its end; the
  // line after one that has not ended is the same line's rest. After an error `sequence` has the
  // tokens that stand before it, as far as they can be known. Errors: KINGLET_UNKNOWN_WORD,
  // KINGLET_ID_OUT_OF_RANGE, KINGLET_INVALID_ARGUMENT (not an id), with the number of the line.
  Status Append(std::string_view line, bool ended, TokenSequence& sequence);

 private:
  Status AppendCut(std::string_view line, bool ended, TokenSequence& sequence);
  Status AppendWord(std::string_view word, TokenSequence& sequence);
  std::string Place() const { return "line " + std::to_string(line_); }

  const Model& model_;
  const std::string source_;
  std::optional<WordLookup> words_;
  uint64_t line_ = 1;
  bool at_start_ = true;
};

}  // namespace kinglet

#endif  // KINGLET_TOOLS_LINE_TOKENS_H_

// The tokens of lines that come one by one.
#ifndef KINGLET_TOOLS_LINE_TOKENS_H_
#define KINGLET_TOOLS_LINE_TOKENS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "converters/texts/text_reader.h"
#include "kinglet/status.h"
#include "runtime/model.h"

namespace kinglet {

// Cuts lines as TextReader does; in a model without a vocabulary they are ids.
class LineTokens {
 public:
  // `model` must outlive this. `source` names the text in messages.
  LineTokens(const Model& model, std::string_view source);

  // Appends the ids of the next line and, if it has `ended`, the word for its end; the line after
  // one that has not ended is the same line's rest. After an error `sequence` has the tokens that
  // stand before it, as far as they can be known. Errors: those of TextReader; of ids
  // KINGLET_ID_OUT_OF_RANGE and KINGLET_INVALID_ARGUMENT (none), with the number of the line.
  Status Append(std::string_view line, bool ended, TokenSequence& sequence);

 private:
  Status AppendIds(std::string_view line, bool ended, TokenSequence& sequence);

  const std::string source_;
  const uint32_t vocabulary_size_;
  std::optional<TextReader> reader_;  // none: ids
  uint64_t line_ = 1;                 // of ids
};

}  // namespace kinglet

#endif  // KINGLET_TOOLS_LINE_TOKENS_H_

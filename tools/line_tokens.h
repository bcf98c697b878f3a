// The tokens of lines that arrive one by one.
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

// Tokenizes lines as TextReader does; for a model without a vocabulary lines are ids.
class LineTokens {
 public:
  // `model` must outlive the object. `input_name` names the text in messages.
  LineTokens(const Model& model, std::string_view input_name);

  // Appends the ids of the next line and, if the line has `ended`, the token for its end. After a
  // line that has not ended, the next one is its rest. After an error `sequence` contains the
  // tokens before the error, as far as they can be known. Errors: those of TextReader; of ids
  // KINGLET_ID_OUT_OF_RANGE and KINGLET_INVALID_ARGUMENT (not a number), with the number of the
  // line.
  Status Append(std::string_view line, bool ended, TokenSequence& sequence);

 private:
  Status AppendIds(std::string_view line, bool ended, TokenSequence& sequence);

  const std::string input_name_;
  const uint32_t vocabulary_size_;
  std::optional<TextReader> reader_;  // nullopt means ids
  uint64_t line_ = 1;                 // of ids
};

}  // namespace kinglet

#endif  // KINGLET_TOOLS_LINE_TOKENS_H_

// Texts that a masked model reads: files of ids, or of lines of text.
#ifndef KINGLET_CONVERTERS_TEXTS_MASKED_FILE_H_
#define KINGLET_CONVERTERS_TEXTS_MASKED_FILE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/text_tables.h"
#include "kinglet/status.h"
#include "runtime/masked_text.h"

namespace kinglet {

class Session;

// A text for each line of `ids` (ReadIdLines), including [CLS] and [SEP]. `segments`: a file with
// the segment number of each id; empty: all are 0. Errors: those of ReadIdLines;
// KINGLET_INVALID_ARGUMENT for files of other lengths, naming the line.
Result<std::vector<MaskedText>> ReadMaskedIds(const std::string& ids, const std::string& segments);

// Lines of text for a model of `window` positions.
struct MaskedLines {
  std::vector<MaskedText> texts;  // at least one; without empty lines
  // Lines of more tokens than the window, which keep their first tokens and the [SEP] at the end.
  uint64_t shortened = 0;
};
// Each line of `path`, tokenized by `tokenizer` into words of the vocabulary; "A ||| B" is a pair.
// Errors: those of reading and tokenization, naming the line; KINGLET_INVALID_ARGUMENT for a file
// without text.
Result<MaskedLines> ReadMaskedLines(const std::string& path, const TextTables& tokenizer,
                                    std::span<const std::string> vocabulary, uint32_t window);

// The text with [MASK] in place of every seventh scored token. The first masked token depends on
// `line`. Masks are about as frequent as in training (Devlin et al. 2019 mask 15 %).
MaskedText WithMasks(const MaskedText& text, const MaskTokens& words, uint64_t line);

// Reads each text on the session's lane 0, unchanged and, if the model predicts words, with masks.
// `read` is called with each text after the lane has read it. Errors: those of Session and `read`,
// with the number of the text.
Status ReadMasked(std::span<const MaskedText> texts, Session& session,
                  const std::function<Status(const MaskedText& text)>& read);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_TEXTS_MASKED_FILE_H_

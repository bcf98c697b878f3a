// The words of a vocabulary that are no text: the one for an unknown word, and those before a text
// and after a line.
#ifndef KINGLET_RUNTIME_SPECIAL_WORDS_H_
#define KINGLET_RUNTIME_SPECIAL_WORDS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "format/vocabulary.h"
#include "kinglet/status.h"
#include "runtime/model.h"
#include "runtime/text/model_text.h"

namespace kinglet {

// The unknown piece of the tokenizer or, without a tokenizer (`text` is null), <unk>.
std::optional<uint32_t> UnknownWord(const Vocabulary& vocabulary, const ModelText* text);
// The first of <eos> (frameworks), </s> (fairseq, OpenNMT), <sos/eos> (speech toolkits) and a
// newline (models of characters).
std::optional<uint32_t> WordForLineEnd(const Vocabulary& vocabulary);

// Ids of the vocabulary that the model predicts. Any of them may be missing.
struct SpecialWords {
  std::optional<uint32_t> unknown;
  // Fed before the first word: the model's start token or else the end of a line.
  std::optional<uint32_t> begin;
  // The model's end token or else the word for the end of a line.
  std::optional<uint32_t> end_of_line;
};
SpecialWords SpecialWordsOf(const Model& model);

// The unknown word. Returns nullopt if the vocabulary has no unknown word. KINGLET_UNSUPPORTED, on
// behalf of `asker`, for a model of ids only, in which the unknown word cannot be told.
Result<std::optional<uint32_t>> UnknownWordOf(const Model& model, const std::string& asker);

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_SPECIAL_WORDS_H_

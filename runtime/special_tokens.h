// The tokens of a vocabulary that are no text: the one for an unknown token, and those before a
// text and after a line.
#ifndef KINGLET_RUNTIME_SPECIAL_TOKENS_H_
#define KINGLET_RUNTIME_SPECIAL_TOKENS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "format/vocabulary.h"
#include "kinglet/status.h"
#include "runtime/model.h"
#include "runtime/text/model_text.h"

namespace kinglet {

// The unknown piece of the tokenizer or, without a tokenizer (`text` is null), <unk>.
std::optional<uint32_t> UnknownToken(const Vocabulary& vocabulary, const ModelText* text);
// The newline of a tokenizer of bytes, or the first of <eos> (frameworks), </s> (fairseq, OpenNMT),
// <sos/eos> (speech toolkits) and a newline (models of characters). `text` may be null.
std::optional<uint32_t> TokenForLineEnd(const Vocabulary& vocabulary, const ModelText* text);

// Ids of the vocabulary that the model predicts. Any of them may be missing.
struct SpecialTokens {
  std::optional<uint32_t> unknown;
  // Fed before the first token: the model's start token or else the end of a line.
  std::optional<uint32_t> begin;
  // The model's end token or else the token for the end of a line.
  std::optional<uint32_t> end_of_line;
};
SpecialTokens SpecialTokensOf(const Model& model);

// The unknown token. Returns nullopt if the vocabulary has no unknown token. KINGLET_UNSUPPORTED,
// on behalf of `asker`, for a model of ids only, in which the unknown token cannot be told.
Result<std::optional<uint32_t>> UnknownTokenOf(const Model& model, const std::string& asker);

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_SPECIAL_TOKENS_H_

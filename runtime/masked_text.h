// Scores a text's tokens with a masked model: each token in turn is replaced by [MASK], and the
// model reads the text again. No result is kept between these readings, because every vector
// depends on every token.
#ifndef KINGLET_RUNTIME_MASKED_TEXT_H_
#define KINGLET_RUNTIME_MASKED_TEXT_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kinglet/status.h"
#include "runtime/session.h"
#include "runtime/text/tokenized_text.h"

namespace kinglet {

// The ids of a text, [CLS] and [SEP] included, and the segment number of each id. Without segments
// all are 0.
struct MaskedText {
  std::vector<uint32_t> ids, segments;
};

// A text from a BERT tokenizer, which adds [CLS], [SEP] and the segments.
MaskedText MaskedTextOf(const TokenizedText& tokenized);

// The tokens of BERT's vocabularies that stand for no text.
struct MaskTokens {
  uint32_t mask, begin, separator;  // [MASK], [CLS], [SEP]
};
// The model's MaskTokens. KINGLET_UNSUPPORTED, on behalf of `asker`, for a model that predicts no
// masked tokens or lacks one of these tokens.
Result<MaskTokens> MaskTokensOf(const Model& model, const std::string& asker);

// Whether a text's token takes part in its pseudo-log-likelihood: not [CLS] and [SEP].
inline bool IsScored(uint32_t id, const MaskTokens& tokens) {
  return id != tokens.begin && id != tokens.separator;
}

// ln p of the token at `position`, predicted from the text with [MASK] at this position. The sum
// over all positions is the pseudo-log-likelihood (Salazar et al. 2020, "Masked Language Model
// Scoring", equation 1). The lane's text is replaced.
// Errors: those of Session::Encode, Session::LookAt and queries.
Result<double> MaskedLogProbability(const MaskedText& text, uint64_t position, uint32_t mask,
                                    Session& session, uint32_t lane = 0);

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_MASKED_TEXT_H_

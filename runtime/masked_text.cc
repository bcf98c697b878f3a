#include "runtime/masked_text.h"

#include <array>
#include <optional>

namespace kinglet {

MaskedText MaskedTextOf(const TokenizedText& tokenized) {
  MaskedText text;
  for (const TokenizedText::Token& token : tokenized.tokens) text.ids.push_back(token.id);
  text.segments.assign(tokenized.segments.begin(), tokenized.segments.end());
  return text;
}

Result<MaskTokens> MaskTokensOf(const Model& model, const std::string& asker) {
  if (!model.plan().reading || model.plan().clusters.empty()) {
    return Status::Refusal(
        KINGLET_UNSUPPORTED, asker, "model", "one that predicts masked words",
        model.plan().reading ? "a masked model without that part" : "another kind of model");
  }
  const Vocabulary* const vocabulary = model.vocabulary();
  std::array<uint32_t, 3> ids{};
  const std::array names = {"[MASK]", "[CLS]", "[SEP]"};
  for (size_t i = 0; i < names.size(); ++i) {
    const std::optional<uint32_t> id =
        vocabulary == nullptr ? std::nullopt : vocabulary->Find(names[i]);
    if (!id) {
      return Status::Refusal(KINGLET_UNSUPPORTED, asker, "model",
                             "the word " + std::string(names[i]) + " (convert --vocab vocab.txt)",
                             vocabulary == nullptr ? "ids only" : "none");
    }
    ids[i] = *id;
  }
  return MaskTokens{ids[0], ids[1], ids[2]};
}

Result<double> MaskedLogProbability(const MaskedText& text, uint64_t position, uint32_t mask,
                                    Session& session, uint32_t lane) {
  std::vector<uint32_t> ids = text.ids;
  ids[position] = mask;
  KINGLET_RETURN_IF_ERROR(session.Encode(ids, text.segments, lane));
  KINGLET_RETURN_IF_ERROR(session.LookAt(position, lane));
  return session.LogProbability(text.ids[position], lane);
}

}  // namespace kinglet

#include "runtime/special_tokens.h"

#include <string_view>

namespace kinglet {

std::optional<uint32_t> UnknownToken(const Vocabulary& vocabulary, const ModelText* text) {
  return text != nullptr ? text->unknown_id() : vocabulary.Find("<unk>");
}

std::optional<uint32_t> TokenForLineEnd(const Vocabulary& vocabulary, const ModelText* text) {
  if (text != nullptr && text->newline_id()) return text->newline_id();
  for (const std::string_view token : {"<eos>", "</s>", "<sos/eos>", "\n"}) {
    if (const std::optional<uint32_t> id = vocabulary.Find(token)) return id;
  }
  return std::nullopt;
}

SpecialTokens SpecialTokensOf(const Model& model) {
  const ModelDescription& description = model.file().description();
  SpecialTokens tokens;
  tokens.end_of_line = description.end_token;
  if (const Vocabulary* const vocabulary = model.vocabulary()) {
    tokens.unknown = UnknownToken(*vocabulary, model.text());
    if (!tokens.end_of_line) tokens.end_of_line = TokenForLineEnd(*vocabulary, model.text());
  }
  tokens.begin = description.start_token ? description.start_token : tokens.end_of_line;
  return tokens;
}

Result<std::optional<uint32_t>> UnknownTokenOf(const Model& model, const std::string& asker) {
  if (model.vocabulary() != nullptr) return SpecialTokensOf(model).unknown;
  return Status::Refusal(KINGLET_UNSUPPORTED, asker, "model", "a model with a vocabulary",
                         "a model that has ids only");
}

}  // namespace kinglet

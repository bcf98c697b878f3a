#include "runtime/special_words.h"

#include <string_view>

namespace kinglet {

SpecialWords SpecialWordsOf(const Model& model) {
  const ModelDescription& description = model.file().description();
  const Vocabulary* const vocabulary = model.vocabulary();
  SpecialWords words;
  words.end_of_line = description.end_token;
  if (model.text() != nullptr) {
    words.unknown = model.text()->unknown_id();
  } else if (vocabulary != nullptr) {
    words.unknown = vocabulary->Find("<unk>");
  }
  for (const std::string_view end : {"<eos>", "</s>", "<sos/eos>", "\n"}) {
    if (!words.end_of_line && vocabulary != nullptr) words.end_of_line = vocabulary->Find(end);
  }
  words.begin = description.start_token ? description.start_token : words.end_of_line;
  return words;
}

Result<std::optional<uint32_t>> UnknownWordOf(const Model& model, const std::string& asker) {
  if (model.vocabulary() != nullptr) return SpecialWordsOf(model).unknown;
  return Status::Refusal(KINGLET_UNSUPPORTED, asker, "model", "a model with a vocabulary",
                         "a model that has ids only");
}

}  // namespace kinglet

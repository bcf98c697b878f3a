#include "runtime/special_words.h"

#include <string_view>

namespace kinglet {

std::optional<uint32_t> UnknownWord(const Vocabulary& vocabulary, const ModelText* text) {
  return text != nullptr ? text->unknown_id() : vocabulary.Find("<unk>");
}

std::optional<uint32_t> WordForLineEnd(const Vocabulary& vocabulary) {
  for (const std::string_view word : {"<eos>", "</s>", "<sos/eos>", "\n"}) {
    if (const std::optional<uint32_t> id = vocabulary.Find(word)) return id;
  }
  return std::nullopt;
}

SpecialWords SpecialWordsOf(const Model& model) {
  const ModelDescription& description = model.file().description();
  SpecialWords words;
  words.end_of_line = description.end_token;
  if (const Vocabulary* const vocabulary = model.vocabulary()) {
    words.unknown = UnknownWord(*vocabulary, model.text());
    if (!words.end_of_line) words.end_of_line = WordForLineEnd(*vocabulary);
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

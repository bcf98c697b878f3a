#include "tools/word_choice.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "converters/checkpoints/text_input.h"
#include "format/message_text.h"

namespace kinglet {
namespace {

Result<TokenSet> ReadAllowedWords(const std::string& path, const Model& model) {
  KINGLET_ASSIGN_OR_RETURN(const std::string text, ReadWholeText(path));
  TokenSet allowed(model.vocabulary_size());
  std::string_view rest = text;
  for (uint64_t line = 1; !rest.empty(); ++line) {
    const std::string_view word = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    if (word.empty()) continue;
    const std::optional<uint32_t> id = model.vocabulary()->Find(word);
    if (!id) {
      return Status::Refusal(KINGLET_UNKNOWN_WORD, path, Numbered("line", line),
                             "a word of the model",
                             Quoted(word) + " (write one word a line, without blanks or numbers)");
    }
    allowed.Add(*id);
  }
  return allowed;
}

}  // namespace

Result<std::optional<TokenSet>> ChooseWords(const WordChoice& choice, const Model& model) {
  if (!choice.prefix && choice.allowed.empty()) return std::optional<TokenSet>();
  if (model.vocabulary() == nullptr) {
    return Status::Refusal(KINGLET_UNSUPPORTED, "predict", choice.prefix ? "--prefix" : "--allowed",
                           "a model file with the texts of words", "ids only");
  }
  TokenSet words(model.vocabulary_size());
  if (!choice.allowed.empty()) {
    KINGLET_ASSIGN_OR_RETURN(words, ReadAllowedWords(choice.allowed, model));
  }
  if (choice.prefix) {
    TokenSet with_prefix(model.vocabulary_size());
    for (const uint32_t id : model.vocabulary()->WithPrefix(*choice.prefix)) {
      if (choice.allowed.empty() || words.Contains(id)) with_prefix.Add(id);
    }
    words = std::move(with_prefix);
  }
  if (choice.excluded) words.Remove(*choice.excluded);
  return std::optional<TokenSet>(std::move(words));
}

}  // namespace kinglet

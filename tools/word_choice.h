// The words that `kinglet predict` is to choose from.
#ifndef KINGLET_TOOLS_WORD_CHOICE_H_
#define KINGLET_TOOLS_WORD_CHOICE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "kinglet/status.h"
#include "runtime/model.h"
#include "runtime/queries/token_set.h"

namespace kinglet {

struct WordChoice {
  std::optional<std::string> prefix = std::nullopt;  // the beginning of the words
  std::string allowed = {};  // path of a file with the words, one a line; empty: all
  std::optional<uint32_t> excluded = std::nullopt;  // a word that is never chosen
};

// nullopt if the choice is all words. Errors: KINGLET_UNSUPPORTED for a model of ids;
// KINGLET_NOT_FOUND and KINGLET_IO_ERROR of the file; KINGLET_UNKNOWN_WORD, naming its line.
Result<std::optional<TokenSet>> ChooseWords(const WordChoice& choice, const Model& model);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_WORD_CHOICE_H_

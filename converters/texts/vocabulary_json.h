// A vocabulary as a JSON array of strings, the form for words that a line of text cannot contain,
// such as a newline; or as an object of words and their ids (vocab.json of Hugging Face's
// libraries), also inside a tokenizer.json.
#ifndef KINGLET_CONVERTERS_TEXTS_VOCABULARY_JSON_H_
#define KINGLET_CONVERTERS_TEXTS_VOCABULARY_JSON_H_

#include <string>
#include <string_view>
#include <vector>

#include "kinglet/status.h"

namespace kinglet {

// The words in the order of their ids. Errors: KINGLET_INVALID_CHECKPOINT naming the entry or the
// byte, also for an empty string, no words, and ids that are not 0 to n - 1. `path` names the file.
Result<std::vector<std::string>> ParseVocabularyJson(const std::string& path,
                                                     std::string_view text);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_TEXTS_VOCABULARY_JSON_H_

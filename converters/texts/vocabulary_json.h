// A vocabulary as a JSON array of strings: the form for words that a line of text cannot hold, such
// as a newline.
#ifndef KINGLET_CONVERTERS_TEXTS_VOCABULARY_JSON_H_
#define KINGLET_CONVERTERS_TEXTS_VOCABULARY_JSON_H_

#include <string>
#include <string_view>
#include <vector>

#include "kinglet/status.h"

namespace kinglet {

// The strings in their order. Errors: KINGLET_INVALID_CHECKPOINT naming the entry or the byte, also
// for an empty string and an empty array. `path` names the file.
Result<std::vector<std::string>> ParseVocabularyJson(const std::string& path,
                                                     std::string_view text);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_TEXTS_VOCABULARY_JSON_H_

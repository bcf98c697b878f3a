// What readers of the JSON files of Hugging Face's tokenizers share.
#ifndef KINGLET_CONVERTERS_TOKENIZERS_TOKENIZER_JSON_H_
#define KINGLET_CONVERTERS_TOKENIZERS_TOKENIZER_JSON_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "converters/checkpoints/json_value.h"
#include "kinglet/status.h"

namespace kinglet {

// Whether the text begins as a JSON object does.
bool LooksLikeJsonObject(std::string_view text);

// The object. Errors: KINGLET_INVALID_CHECKPOINT for another text, and for nesting deeper than a
// JsonValue may.
Result<JsonValue> ParseTokenizerJson(std::string_view text);

// The value at a path of names; null if there is none.
const JsonValue& ValueAt(const JsonValue& file, std::initializer_list<const char*> path);

// The value for a message: "none", a scalar, of which a long one is shown in part, "a list" or "an
// object".
std::string ShortText(const JsonValue& value);

// A token that was added to a vocabulary, and whether it is special: no text is decoded from it.
struct AddedToken {
  std::string text;
  uint64_t id;
  bool is_special;
};
// The tokens of "added_tokens". Errors: KINGLET_INVALID_CHECKPOINT; KINGLET_UNSUPPORTED for tokens
// that take white space next to them, or stand for whole words only.
Result<std::vector<AddedToken>> AddedTokensOf(const JsonValue& file);

// The pieces of an object of pieces and ids, and the added tokens, in the order of their ids.
// Errors: KINGLET_INVALID_CHECKPOINT unless the ids are 0 to n - 1, each once.
Result<std::vector<std::string>> PiecesOf(const JsonValue& vocabulary,
                                          const std::vector<AddedToken>& added);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_TOKENIZERS_TOKENIZER_JSON_H_

#include "converters/tokenizers/tokenizer_json.h"

#include <map>
#include <optional>

#include "format/message_text.h"

namespace kinglet {
namespace {

Status RefuseJson(const std::string& where, const std::string& expected, const std::string& found) {
  return Status::Refusal(KINGLET_INVALID_CHECKPOINT, "tokenizer", where, expected, found);
}

}  // namespace

bool LooksLikeJsonObject(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  return first != text.npos && text[first] == '{';
}

Result<JsonValue> ParseTokenizerJson(std::string_view text) {
  JsonValueBuilder builder;
  JsonValue file = builder.Build(text);
  if (file.is_object()) return file;
  if (!builder.is_too_deep()) return RefuseJson("file", "a JSON object", "another text");
  return RefuseJson("file", "at most " + std::to_string(builder.kMostLevels) + " levels", "more");
}

const JsonValue& ValueAt(const JsonValue& file, std::initializer_list<const char*> path) {
  static const JsonValue null;
  const JsonValue* value = &file;
  for (const char* const name : path) {
    value = value->Find(name);
    if (value == nullptr) return null;
  }
  return *value;
}

std::string ShortText(const JsonValue& value) {
  constexpr size_t kShown = 60;
  if (value.is_array()) return "a list";
  if (value.is_object()) return "an object";
  if (value.is_null()) return "none";
  const std::string text =
      value.scalar.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  return text.size() <= kShown ? text : text.substr(0, kShown) + "..";
}

Result<std::vector<AddedToken>> AddedTokensOf(const JsonValue& file) {
  std::vector<AddedToken> added;
  for (const JsonValue& token : ValueAt(file, {"added_tokens"}).items) {
    const std::string* const text = ValueAt(token, {"content"}).text();
    const std::optional<uint64_t> id = ValueAt(token, {"id"}).number();
    if (text == nullptr || !id) {
      return RefuseJson("added_tokens", "objects with id and content", ShortText(token));
    }
    for (const char* const name : {"lstrip", "rstrip", "single_word"}) {
      if (!ValueAt(token, {name}).is_true()) continue;
      return Status::Refusal(
          KINGLET_UNSUPPORTED, "tokenizer", "added_tokens, " + Quoted(*text),
          std::string(name) + " false",
          "true (encode texts with the tokenizer's own program, and score their ids)");
    }
    added.push_back({*text, *id, ValueAt(token, {"special"}).is_true()});
  }
  return added;
}

Result<std::vector<std::string>> PiecesOf(const JsonValue& vocabulary,
                                          const std::vector<AddedToken>& added) {
  if (!vocabulary.is_object() || vocabulary.items.empty()) {
    return RefuseJson("vocab", "an object of pieces and ids", ShortText(vocabulary));
  }
  std::map<uint64_t, std::string> by_id;
  const auto add = [&by_id](const std::string& piece, uint64_t id) -> Status {
    const auto [place, is_new] = by_id.emplace(id, piece);
    if (is_new || place->second == piece) return {};
    return RefuseJson("vocab", "one piece of id " + std::to_string(id),
                      Quoted(place->second) + " and " + Quoted(piece));
  };
  for (size_t i = 0; i < vocabulary.items.size(); ++i) {
    const std::string& piece = vocabulary.names[i];
    const std::optional<uint64_t> id = vocabulary.items[i].number();
    if (!id) return RefuseJson(Quoted(piece), "an id", ShortText(vocabulary.items[i]));
    KINGLET_RETURN_IF_ERROR(add(piece, *id));
  }
  for (const AddedToken& token : added) KINGLET_RETURN_IF_ERROR(add(token.text, token.id));
  std::vector<std::string> pieces;
  for (auto& [id, piece] : by_id) {
    if (id != pieces.size()) {
      return RefuseJson("vocab", "a piece of id " + std::to_string(pieces.size()), "none");
    }
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

}  // namespace kinglet

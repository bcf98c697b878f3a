#include "converters/tokenizers/tokenizer_json.h"

#include <algorithm>
#include <map>

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

Result<TokenizerJson> ParseTokenizerJson(std::string_view text) {
  constexpr int kMostLevels = 32;
  bool deep = false;
  const auto limit = [&deep](int depth, TokenizerJson::parse_event_t, TokenizerJson&) {
    deep = deep || depth > kMostLevels;
    return !deep;
  };
  TokenizerJson file = TokenizerJson::parse(text, limit, /*allow_exceptions=*/false);
  if (deep) return RefuseJson("file", "at most " + std::to_string(kMostLevels) + " levels", "more");
  if (file.is_object()) return file;
  return RefuseJson("file", "a JSON object", "another text");
}

const TokenizerJson& ValueAt(const TokenizerJson& file, std::initializer_list<const char*> path) {
  static const TokenizerJson null;
  const TokenizerJson* value = &file;
  for (const char* const name : path) {
    const auto found = value->is_object() ? value->find(name) : value->end();
    if (found == value->end()) return null;
    value = &*found;
  }
  return *value;
}

std::string ShortText(const TokenizerJson& value) {
  constexpr size_t kShown = 60;
  if (value.is_null()) return "none";
  const std::string text = value.dump(-1, ' ', true, TokenizerJson::error_handler_t::replace);
  return text.size() <= kShown ? text : text.substr(0, kShown) + "..";
}

Result<std::vector<AddedToken>> AddedTokensOf(const TokenizerJson& file) {
  std::vector<AddedToken> added;
  for (const TokenizerJson& token : ValueAt(file, {"added_tokens"})) {
    const TokenizerJson &text = ValueAt(token, {"content"}), &id = ValueAt(token, {"id"});
    if (!text.is_string() || !id.is_number_unsigned()) {
      return RefuseJson("added_tokens", "objects with id and content", ShortText(token));
    }
    for (const char* const name : {"lstrip", "rstrip", "single_word"}) {
      if (ValueAt(token, {name}) != true) continue;
      return Status::Refusal(
          KINGLET_UNSUPPORTED, "tokenizer", "added_tokens, " + ShortText(text),
          std::string(name) + " false",
          "true (encode texts with the tokenizer's own program, and score their ids)");
    }
    added.push_back(
        {text.get<std::string>(), id.get<uint64_t>(), ValueAt(token, {"special"}) == true});
  }
  return added;
}

Result<std::vector<std::string>> PiecesOf(const TokenizerJson& vocabulary,
                                          const std::vector<AddedToken>& added) {
  if (!vocabulary.is_object() || vocabulary.empty()) {
    return RefuseJson("vocab", "an object of pieces and ids", ShortText(vocabulary));
  }
  std::map<uint64_t, std::string> by_id;
  const auto add = [&by_id](const std::string& piece, uint64_t id) -> Status {
    const auto [place, is_new] = by_id.emplace(id, piece);
    if (is_new || place->second == piece) return {};
    return RefuseJson("vocab", "one piece of id " + std::to_string(id),
                      Quoted(place->second) + " and " + Quoted(piece));
  };
  for (const auto& [piece, id] : vocabulary.items()) {
    if (!id.is_number_unsigned()) return RefuseJson(Quoted(piece), "an id", ShortText(id));
    KINGLET_RETURN_IF_ERROR(add(piece, id.get<uint64_t>()));
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

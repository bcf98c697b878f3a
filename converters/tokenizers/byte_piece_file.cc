#include "converters/tokenizers/byte_piece_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "converters/checkpoints/input_file.h"
#include "converters/texts/word_list.h"
#include "format/message_text.h"

namespace kinglet {
namespace {

using TokenizerJson = nlohmann::json;

Status RefuseJson(const std::string& where, const std::string& expected, const std::string& found) {
  return Status::Refusal(KINGLET_INVALID_CHECKPOINT, "tokenizer", where, expected, found);
}

// Refuses another kind of tokenizer than GPT-2's.
Status RefuseKind(const std::string& where, const std::string& expected, const std::string& found) {
  return Status::Refusal(KINGLET_UNSUPPORTED, "tokenizer", where, expected + ", as GPT-2 has",
                         found + " (encode texts with the tokenizer's own program, use --ids)");
}

// A member of an object; null if there is none.
const TokenizerJson& MemberOf(const TokenizerJson& object, const char* name) {
  static const TokenizerJson null;
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found == object.end() ? null : *found;
}

std::string ShortText(const TokenizerJson& value) {
  constexpr size_t kShown = 60;
  const std::string text = value.dump(-1, ' ', true, TokenizerJson::error_handler_t::replace);
  return text.size() <= kShown ? text : text.substr(0, kShown) + "..";
}

// A member that changes how text is tokenized, and the values with which it is read.
struct ReadMember {
  const char* part;  // an object of the file
  const char* name;
  std::vector<TokenizerJson> values;
};

// Refuses tokenizers of other kinds. An absent member counts as null.
Status CheckKind(const TokenizerJson& file) {
  const TokenizerJson null;
  static const std::vector<ReadMember> members = {
      {"model", "type", {"BPE", null}},
      {"model", "dropout", {null, 0, 0.0}},
      {"model", "unk_token", {null}},
      {"model", "continuing_subword_prefix", {null, ""}},
      {"model", "end_of_word_suffix", {null, ""}},
      {"model", "byte_fallback", {null, false}},
      {"model", "ignore_merges", {null, false}},
      {"pre_tokenizer", "type", {"ByteLevel"}},
      {"pre_tokenizer", "use_regex", {null, true}},
      {"post_processor", "type", {null, "ByteLevel"}},
      {"decoder", "type", {null, "ByteLevel"}},
  };
  if (!MemberOf(file, "normalizer").is_null()) {
    return RefuseKind("normalizer", "null", ShortText(file["normalizer"]));
  }
  for (const ReadMember& member : members) {
    const TokenizerJson& value = MemberOf(MemberOf(file, member.part), member.name);
    if (std::find(member.values.begin(), member.values.end(), value) != member.values.end()) {
      continue;
    }
    return RefuseKind(std::string(member.part) + ", " + member.name, ShortText(member.values[0]),
                      ShortText(value));
  }
  return {};
}

Result<TokenizerJson> ParseTokenizer(std::string_view text) {
  TokenizerJson file = TokenizerJson::parse(text, nullptr, /*allow_exceptions=*/false);
  if (file.is_object()) return file;
  return RefuseJson("file", "a JSON object", "another text");
}

// Reads an object of pieces and their ids, and more pieces with theirs.
Result<std::vector<std::string>> PiecesOf(
    const TokenizerJson& vocabulary, const std::vector<std::pair<std::string, uint64_t>>& more) {
  std::vector<std::string> pieces;
  std::vector<uint64_t> ids;
  if (!vocabulary.is_object()) {
    return RefuseJson("vocab", "an object of pieces and ids", ShortText(vocabulary));
  }
  for (const auto& [piece, id] : vocabulary.items()) {
    if (!id.is_number_unsigned()) return RefuseJson(Quoted(piece), "an id", ShortText(id));
    pieces.push_back(piece);
    ids.push_back(id.get<uint64_t>());
  }
  for (const auto& [piece, id] : more) {
    if (vocabulary.contains(piece)) continue;
    pieces.push_back(piece);
    ids.push_back(id);
  }
  std::optional<std::vector<std::string>> ordered = InIdOrder(pieces, ids);
  if (ordered) return *std::move(ordered);
  return RefuseJson("vocab", "ids 0 to " + std::to_string(pieces.size() - 1) + ", each once",
                    "others");
}

// Adds the merges "LEFT RIGHT".
Status AddMerges(const std::vector<std::string>& lines, BytePieceTables& tables) {
  std::unordered_map<std::string_view, uint32_t> ids;
  for (uint32_t id = 0; id < tables.pieces.size(); ++id) ids.emplace(tables.pieces[id], id);
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string_view line = lines[i];
    const size_t blank = line.find(' ');
    const auto left = ids.find(line.substr(0, blank));
    const auto right = blank == line.npos ? ids.end() : ids.find(line.substr(blank + 1));
    if (left == ids.end() || right == ids.end()) {
      return RefuseJson(Numbered("merge", i), "two pieces", Quoted(line));
    }
    tables.merges.emplace_back(left->second, right->second);
  }
  return {};
}

Result<BytePieceTables> Checked(BytePieceTables pieces) {
  TextTables tables{false, std::move(pieces)};
  KINGLET_RETURN_IF_ERROR(CheckTextTables(KINGLET_INVALID_CHECKPOINT, tables));
  return std::get<BytePieceTables>(std::move(tables.method));
}

}  // namespace

bool LooksLikeBytePieces(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  return first != text.npos && text[first] == '{';
}

bool HasMerges(std::string_view text) {
  const TokenizerJson file = TokenizerJson::parse(text, nullptr, false);
  return file.is_object() && MemberOf(file, "model").is_object();
}

Result<BytePieceTables> ReadTokenizerJson(std::string_view text) {
  KINGLET_ASSIGN_OR_RETURN(const TokenizerJson file, ParseTokenizer(text));
  KINGLET_RETURN_IF_ERROR(CheckKind(file));
  BytePieceTables tables;
  const TokenizerJson& prefix = MemberOf(MemberOf(file, "pre_tokenizer"), "add_prefix_space");
  tables.space_before = prefix.is_boolean() && prefix.get<bool>();
  std::vector<std::pair<std::string, uint64_t>> added;
  for (const TokenizerJson& token : MemberOf(file, "added_tokens")) {
    const TokenizerJson &word = MemberOf(token, "content"), &id = MemberOf(token, "id");
    if (!word.is_string() || !id.is_number_unsigned()) {
      return RefuseJson("added_tokens", "objects with id and content", ShortText(token));
    }
    for (const char* const name : {"lstrip", "rstrip", "single_word"}) {
      if (MemberOf(token, name) != true) continue;
      return RefuseKind("added_tokens, " + word.dump(), std::string(name) + " false", "true");
    }
    added.emplace_back(word.get<std::string>(), id.get<uint64_t>());
  }
  const TokenizerJson& model = MemberOf(file, "model");
  KINGLET_ASSIGN_OR_RETURN(tables.pieces, PiecesOf(MemberOf(model, "vocab"), added));
  for (const auto& [word, id] : added) {
    if (id >= tables.pieces.size() || tables.pieces[id] != word) {
      return RefuseJson("added_tokens, " + Quoted(word), "the id that it has in vocab",
                        std::to_string(id));
    }
    tables.marks.push_back(static_cast<uint32_t>(id));
  }
  std::sort(tables.marks.begin(), tables.marks.end());
  // Newer versions of the library write a merge as a list.
  std::vector<std::string> merges;
  for (const TokenizerJson& merge : MemberOf(model, "merges")) {
    const bool pair =
        merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string();
    if (!pair && !merge.is_string()) {
      return RefuseJson("merges", "pairs of pieces", ShortText(merge));
    }
    merges.push_back(pair ? merge[0].get<std::string>() + " " + merge[1].get<std::string>()
                          : merge.get<std::string>());
  }
  KINGLET_RETURN_IF_ERROR(AddMerges(merges, tables));
  return Checked(std::move(tables));
}

Result<BytePieceTables> ReadVocabularyAndMerges(std::string_view vocabulary,
                                                std::string_view merges) {
  KINGLET_ASSIGN_OR_RETURN(const TokenizerJson file, ParseTokenizer(vocabulary));
  BytePieceTables tables;
  KINGLET_ASSIGN_OR_RETURN(tables.pieces, PiecesOf(file, {}));
  const auto end = std::find(tables.pieces.begin(), tables.pieces.end(), "<|endoftext|>");
  if (end != tables.pieces.end()) {
    tables.marks.push_back(static_cast<uint32_t>(end - tables.pieces.begin()));
  }
  std::vector<std::string> lines;
  for (std::string_view line : LinesOf(merges)) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    const bool is_version = lines.empty() && line.starts_with("#version");
    if (!line.empty() && !is_version) lines.emplace_back(line);
  }
  KINGLET_RETURN_IF_ERROR(AddMerges(lines, tables));
  return Checked(std::move(tables));
}

}  // namespace kinglet

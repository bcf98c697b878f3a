#include "converters/tokenizers/byte_piece_file.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "converters/tokenizers/checked_tables.h"
#include "format/input_file.h"
#include "format/message_text.h"

namespace kinglet {
namespace {

Status RefuseBytePieces(const std::string& where, const std::string& expected,
                        const std::string& found) {
  return Status::Refusal(KINGLET_INVALID_CHECKPOINT, "tokenizer", where, expected, found);
}

// A member that changes how text is tokenized, and the values with which it is read.
struct ReadMember {
  const char *part, *name;
  std::vector<nlohmann::json> values;  // scalars
};

// Refuses tokenizers of other kinds. An absent member counts as null.
Status CheckBytePieceKind(const JsonValue& file) {
  const nlohmann::json null;
  static const std::vector<ReadMember> members = {
      {"normalizer", "type", {null}},
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
  for (const ReadMember& member : members) {
    const JsonValue& value = ValueAt(file, {member.part, member.name});
    const bool is_read = std::any_of(member.values.begin(), member.values.end(),
                                     [&value](const auto& read) { return value.Is(read); });
    if (is_read) continue;
    return Status::Refusal(
        KINGLET_UNSUPPORTED, "tokenizer", std::string(member.part) + ", " + member.name,
        ShortText({.scalar = member.values[0]}) + ", as GPT-2 has",
        ShortText(value) + " (encode texts with the tokenizer's own program, and score their ids)");
  }
  return {};
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
      return RefuseBytePieces(Numbered("merge", i), "two pieces", Quoted(line));
    }
    tables.merges.emplace_back(left->second, right->second);
  }
  return {};
}

}  // namespace

Result<BytePieceTables> ReadBytePieceJson(const JsonValue& file) {
  KINGLET_RETURN_IF_ERROR(CheckBytePieceKind(file));
  BytePieceTables tables;
  tables.space_before = ValueAt(file, {"pre_tokenizer", "add_prefix_space"}).is_true();
  KINGLET_ASSIGN_OR_RETURN(const std::vector<AddedToken> added, AddedTokensOf(file));
  KINGLET_ASSIGN_OR_RETURN(tables.pieces, PiecesOf(ValueAt(file, {"model", "vocab"}), added));
  for (const AddedToken& token : added) {
    tables.marks.push_back(static_cast<uint32_t>(token.id));
    if (!token.is_special) tables.spelled_marks.push_back(static_cast<uint32_t>(token.id));
  }
  std::sort(tables.marks.begin(), tables.marks.end());
  std::sort(tables.spelled_marks.begin(), tables.spelled_marks.end());
  // Newer versions of the library write a merge as a list.
  std::vector<std::string> merges;
  for (const JsonValue& merge : ValueAt(file, {"model", "merges"}).items) {
    const bool pair = merge.is_array() && merge.items.size() == 2 &&
                      merge.items[0].text() != nullptr && merge.items[1].text() != nullptr;
    if (!pair && merge.text() == nullptr) {
      return RefuseBytePieces("merges", "pairs of pieces", ShortText(merge));
    }
    merges.push_back(pair ? *merge.items[0].text() + " " + *merge.items[1].text() : *merge.text());
  }
  KINGLET_RETURN_IF_ERROR(AddMerges(merges, tables));
  return CheckedTables(std::move(tables));
}

Result<BytePieceTables> ReadVocabularyAndMerges(const JsonValue& vocabulary,
                                                std::string_view merges,
                                                const JsonValue& settings) {
  BytePieceTables tables;
  tables.space_before = ValueAt(settings, {"add_prefix_space"}).is_true();
  KINGLET_ASSIGN_OR_RETURN(tables.pieces, PiecesOf(vocabulary, {}));
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
  return CheckedTables(std::move(tables));
}

}  // namespace kinglet

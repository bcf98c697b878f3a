// Reads lines and one value of a JSON file, or a tokenizer.json.
#include "converters/tokenizers/word_piece_file.h"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "converters/checkpoints/input_file.h"
#include "format/message_text.h"

namespace kinglet {
namespace {

std::string_view WithoutReturn(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

// Whether the settings have "do_lower_case": false. The file is one object, whose other members do
// not matter here.
bool KeepsLetters(std::string_view settings) {
  static constexpr std::string_view kName = "\"do_lower_case\"";
  const size_t name = settings.find(kName);
  if (name == settings.npos) return false;
  const size_t value = settings.find_first_not_of(" \t\r\n:", name + kName.size());
  return value != settings.npos && settings.substr(value).starts_with("false");
}

}  // namespace

namespace {

using Json = nlohmann::json;

// The value at a path; null if there is none.
Json ValueAt(const Json& file, std::initializer_list<const char*> path) {
  const Json* value = &file;
  for (const char* key : path) {
    if (!value->is_object() || !value->contains(key)) return nullptr;
    value = &(*value)[key];
  }
  return *value;
}

Status RefuseWordPieceJson(const std::string& where, const Json& expected, const Json& found) {
  const std::string value = found.is_null()         ? "none"
                            : found.is_structured() ? "an array or an object"
                                                    : found.dump(-1, ' ', true);
  return Status::Refusal(
      KINGLET_UNSUPPORTED, "word pieces", where, expected.dump() + ", as of BERT",
      value +
          " (give the file that it was made of: SentencePiece's .model, byte-pair codes; of "
          "whole words, --tokenizer spaces; or read ids that its library makes: --ids)");
}

}  // namespace

bool LooksLikeWordPieceJson(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  return first != text.npos && text[first] == '{' &&
         ValueAt(Json::parse(text, nullptr, false), {"model", "type"}) == Json("WordPiece");
}

Result<WordPieceTables> ReadWordPieceJson(std::string_view text) {
  const Json file = Json::parse(text, nullptr, false);
  const struct {
    const char *part, *key;
    Json value;
  } stated[] = {{"model", "unk_token", "[UNK]"},
                {"model", "continuing_subword_prefix", "##"},
                {"model", "max_input_chars_per_word", 100},
                {"normalizer", "type", "BertNormalizer"},
                {"normalizer", "clean_text", true},
                {"normalizer", "handle_chinese_chars", true},
                {"pre_tokenizer", "type", "BertPreTokenizer"}};
  for (const auto& [part, key, value] : stated) {
    const Json found = ValueAt(file, {part, key});
    const std::string where = std::string(part) + "/" + key;
    if (found != value) return RefuseWordPieceJson(where, value, found);
  }
  WordPieceTables tables;
  const Json lower = ValueAt(file, {"normalizer", "lowercase"});
  tables.plain_letters = lower == Json(true);
  const Json accents = ValueAt(file, {"normalizer", "strip_accents"});
  if (!accents.is_null() && accents != lower) {
    return RefuseWordPieceJson("normalizer/strip_accents", lower, accents);
  }
  std::map<uint64_t, std::string> pieces;
  const Json vocabulary = ValueAt(file, {"model", "vocab"}),
             added = ValueAt(file, {"added_tokens"});
  for (const auto& [piece, id] : vocabulary.items()) {
    if (id.is_number_unsigned()) pieces[id.get<uint64_t>()] = piece;
  }
  for (const Json& token : added) {
    const Json id = ValueAt(token, {"id"}), content = ValueAt(token, {"content"});
    if (id.is_number_unsigned() && content.is_string()) pieces[id.get<uint64_t>()] = content;
  }
  for (auto& [id, piece] : pieces) {
    if (id != tables.pieces.size()) {
      return Status::Refusal(KINGLET_INVALID_CHECKPOINT, "word pieces", "vocab",
                             "a piece of id " + std::to_string(tables.pieces.size()), "none");
    }
    tables.pieces.push_back(std::move(piece));
  }
  TextTables tables_of_file{false, std::move(tables)};
  KINGLET_RETURN_IF_ERROR(CheckTextTables(KINGLET_INVALID_CHECKPOINT, tables_of_file));
  return std::get<WordPieceTables>(std::move(tables_of_file.method));
}

bool LooksLikeWordPieces(std::string_view text) {
  const std::vector<std::string_view> lines = LinesOf(text);
  return std::any_of(lines.begin(), lines.end(),
                     [](std::string_view line) { return WithoutReturn(line) == "[UNK]"; });
}

Result<WordPieceTables> ReadWordPieces(std::string_view text, std::string_view settings) {
  WordPieceTables tables;
  tables.plain_letters = !KeepsLetters(settings);
  for (const std::string_view line : LinesOf(text)) {
    const std::string_view piece = WithoutReturn(line);
    if (piece.find_first_of(" \t\r") != piece.npos) {
      return Status::Refusal(KINGLET_INVALID_CHECKPOINT, "word pieces",
                             Numbered("line", tables.pieces.size() + 1), "a piece without blanks",
                             Quoted(piece) + " (write one piece a line)");
    }
    tables.pieces.emplace_back(piece);
  }
  TextTables tables_of_file{false, std::move(tables)};
  KINGLET_RETURN_IF_ERROR(CheckTextTables(KINGLET_INVALID_CHECKPOINT, tables_of_file));
  return std::get<WordPieceTables>(std::move(tables_of_file.method));
}

}  // namespace kinglet

// Reads lines and one value of a JSON file, or a tokenizer.json.
#include "converters/tokenizers/word_piece_file.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "converters/tokenizers/checked_tables.h"
#include "format/input_file.h"
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

// The marks that the tokenizer keeps whole (runtime/text/word_pieces.cc).
constexpr std::array<std::string_view, 5> kMarksOfBert = {"[UNK]", "[SEP]", "[PAD]", "[CLS]",
                                                          "[MASK]"};

Status RefuseWordPieceJson(const std::string& where, const std::string& expected,
                           const std::string& found) {
  return Status::Refusal(
      KINGLET_UNSUPPORTED, "word pieces", where, expected + ", as of BERT",
      found +
          " (give the file that it was made of: SentencePiece's .model, byte-pair codes; of "
          "whole words, --tokenizer spaces; or score ids that its library makes)");
}

}  // namespace

Result<WordPieceTables> ReadWordPieceJson(const JsonValue& file) {
  const struct {
    const char *part, *key;
    nlohmann::json value;
  } stated[] = {{"model", "unk_token", "[UNK]"},
                {"model", "continuing_subword_prefix", "##"},
                {"model", "max_input_chars_per_word", 100},
                {"normalizer", "type", "BertNormalizer"},
                {"normalizer", "clean_text", true},
                {"normalizer", "handle_chinese_chars", true},
                {"pre_tokenizer", "type", "BertPreTokenizer"}};
  for (const auto& [part, key, value] : stated) {
    const JsonValue& found = ValueAt(file, {part, key});
    const std::string where = std::string(part) + "/" + key;
    if (found.Is(value)) continue;
    return RefuseWordPieceJson(where, ShortText({.scalar = value}), ShortText(found));
  }
  WordPieceTables tables;
  const JsonValue& lower = ValueAt(file, {"normalizer", "lowercase"});
  tables.plain_letters = lower.is_true();
  const JsonValue& accents = ValueAt(file, {"normalizer", "strip_accents"});
  if (!accents.is_null() && accents.is_true() != lower.is_true()) {
    return RefuseWordPieceJson("normalizer/strip_accents", ShortText(lower), ShortText(accents));
  }
  KINGLET_ASSIGN_OR_RETURN(const std::vector<AddedToken> added, AddedTokensOf(file));
  for (const AddedToken& token : added) {
    if (std::find(kMarksOfBert.begin(), kMarksOfBert.end(), token.text) == kMarksOfBert.end()) {
      return RefuseWordPieceJson("added_tokens", "[UNK], [SEP], [PAD], [CLS] or [MASK]",
                                 Quoted(token.text));
    }
  }
  KINGLET_ASSIGN_OR_RETURN(tables.pieces, PiecesOf(ValueAt(file, {"model", "vocab"}), added));
  return CheckedTables(std::move(tables));
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
  return CheckedTables(std::move(tables));
}

}  // namespace kinglet

// Reads lines, and one value of a JSON file.
#include "converters/tokenizers/word_piece_file.h"

#include <algorithm>
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

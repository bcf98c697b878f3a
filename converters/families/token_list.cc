#include "converters/families/token_list.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "converters/checkpoints/list_folder.h"
#include "converters/checkpoints/text_input.h"
#include "converters/checkpoints/varint_reader.h"
#include "converters/texts/word_list.h"
#include "format/input_file.h"

namespace kinglet {
namespace {

namespace fs = std::filesystem;

// The paths of possible token lists, in order.
std::vector<fs::path> TokenLists(const std::string& checkpoint) {
  std::error_code error;
  fs::path folder = fs::absolute(checkpoint, error).parent_path();
  std::vector<fs::path> places = {folder / "tokens.txt"};
  for (int level = 0; level < 3; ++level, folder = folder.parent_path()) {
    std::vector<fs::path> found;
    for (const fs::path& parent : {folder, folder / "data"}) {
      const auto entries = ListFolder(parent);
      if (!entries.ok()) continue;  // not there
      for (const fs::path& entry : *entries) {
        if (entry.filename().string().starts_with("lang_")) found.push_back(entry / "tokens.txt");
      }
    }
    std::sort(found.begin(), found.end());
    places.insert(places.end(), found.begin(), found.end());
  }
  return places;
}

// The first length-delimited field 1 of a piece: its text.
std::optional<std::string> PieceText(std::string_view piece) {
  ProtoReader fields(piece);
  while (const std::optional<ProtoField> field = fields.Next()) {
    if (field->number == 1 && !field->bytes.empty()) return std::string(field->bytes);
  }
  return std::nullopt;
}

}  // namespace

Result<std::vector<std::string>> FindTokenList(const std::string& checkpoint, uint64_t words) {
  std::vector<std::string> chosen;
  std::string path;
  for (const fs::path& place : TokenLists(checkpoint)) {
    std::error_code error;
    if (!fs::is_regular_file(place, error)) continue;
    KINGLET_ASSIGN_OR_RETURN(const std::string text, ReadWholeText(place.string()));
    std::optional<std::vector<std::string>> pieces = WordsByIds(text);
    if (!pieces) continue;
    DropDisambiguation(words, *pieces);
    if (pieces->size() != words || *pieces == chosen) continue;
    if (!chosen.empty()) {
      return Status::Refusal(KINGLET_INVALID_CHECKPOINT, "token list", checkpoint,
                             "one list that fits (name it with --vocab)",
                             path + " and " + place.string());
    }
    chosen = std::move(*pieces);
    path = place.string();
  }
  return chosen;
}

Result<std::vector<std::string>> ReadSentencePieces(const std::string& path) {
  KINGLET_ASSIGN_OR_RETURN(const std::string bytes, ReadWholeText(path, InputForm::kBytes));
  const auto refuse = [&](size_t piece, const std::string& found) {
    return Status::Refusal(KINGLET_INVALID_CHECKPOINT, path, "piece " + std::to_string(piece),
                           "a SentencePiece model", found);
  };
  std::vector<std::string> pieces;
  ProtoReader fields(bytes);
  while (const std::optional<ProtoField> field = fields.Next()) {
    if (field->number != 1) continue;
    std::optional<std::string> text = PieceText(field->bytes);
    if (!text) return refuse(pieces.size(), "no text");
    pieces.push_back(std::move(*text));
  }
  if (fields.failed() || pieces.empty()) return refuse(pieces.size(), "other bytes");
  return pieces;
}

Result<std::vector<std::string>> FindSentencePieces(const std::string& checkpoint,
                                                    const std::string& config, uint64_t words) {
  for (const std::string& neighbour : {checkpoint, config}) {
    std::error_code error;
    const fs::path path = fs::absolute(neighbour, error).parent_path() / "tokenizer.ckpt";
    if (!fs::is_regular_file(path, error)) continue;
    KINGLET_ASSIGN_OR_RETURN(std::vector<std::string> pieces, ReadSentencePieces(path.string()));
    if (pieces.size() == words) return pieces;
  }
  return std::vector<std::string>();
}

}  // namespace kinglet

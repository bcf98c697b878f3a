#include "converters/families/token_list.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "converters/checkpoints/input_file.h"
#include "converters/checkpoints/list_folder.h"
#include "converters/checkpoints/text_input.h"
#include "converters/texts/word_list.h"

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

// The fields of a protobuf message, read as data.
class ProtobufFields {
 public:
  explicit ProtobufFields(std::string_view bytes) : bytes_(bytes) {}

  struct Field {
    uint64_t number = 0;
    std::string_view bytes;  // of a length-delimited field
  };
  // False at the end, or if the bytes are not a message (failed()).
  bool Next(Field& field) {
    if (at_ == bytes_.size()) return false;
    uint64_t key = 0;
    if (!Varint(key)) return Fail();
    field = {key >> 3, {}};
    uint64_t length = 0;
    switch (key & 7) {
      case 0:
        return Varint(length) || Fail();
      case 1:
        length = 8;
        break;
      case 2:
        if (!Varint(length)) return Fail();
        break;
      case 5:
        length = 4;
        break;
      default:
        return Fail();
    }
    if (length > bytes_.size() - at_) return Fail();
    field.bytes = bytes_.substr(at_, length);
    at_ += length;
    return true;
  }
  bool failed() const { return failed_; }

 private:
  bool Fail() {
    failed_ = true;
    return false;
  }
  bool Varint(uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 64 && at_ < bytes_.size(); shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes_[at_++]);
      value |= uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }

  std::string_view bytes_;
  size_t at_ = 0;
  bool failed_ = false;
};

// The first length-delimited field 1 of a piece: its text.
std::optional<std::string> PieceText(std::string_view piece) {
  ProtobufFields fields(piece);
  ProtobufFields::Field field;
  while (fields.Next(field)) {
    if (field.number == 1 && !field.bytes.empty()) return std::string(field.bytes);
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
  ProtobufFields fields(bytes);
  ProtobufFields::Field field;
  while (fields.Next(field)) {
    if (field.number != 1) continue;
    std::optional<std::string> text = PieceText(field.bytes);
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

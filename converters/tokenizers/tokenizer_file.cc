// Tells the kinds of files apart and reads them.
#include "converters/tokenizers/tokenizer_file.h"

#include <array>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "converters/checkpoints/list_folder.h"
#include "converters/checkpoints/refuse_checkpoint.h"
#include "converters/checkpoints/text_input.h"
#include "converters/tokenizers/byte_piece_file.h"
#include "converters/tokenizers/merge_file.h"
#include "converters/tokenizers/sentence_piece_file.h"
#include "converters/tokenizers/word_piece_file.h"
#include "format/input_file.h"

namespace kinglet {
namespace {

// A SentencePiece model begins with its first piece, field 1 of protobuf's wire type 2 (a newline),
// or with another field below 4. A text with pairs in its lines begins with a character that is
// printed; its pairs may have any bytes but blanks and line ends.
bool LooksLikeProtobuf(std::string_view bytes) {
  return !bytes.empty() && static_cast<unsigned char>(bytes.front()) < ' ';
}

Result<MergeTables> ReadCodes(const TokenizerChoice& choice, std::string_view bytes) {
  KINGLET_ASSIGN_OR_RETURN(MergeTables tables, ReadMerges(bytes));
  if (choice.known_tokens.empty()) return tables;
  KINGLET_ASSIGN_OR_RETURN(const std::string known,
                           ReadWholeText(choice.known_tokens, InputForm::kBytes));
  Result<std::vector<std::string>> tokens = ReadKnownTokens(known, choice.threshold);
  if (!tokens.ok()) return InFile(choice.known_tokens, tokens.status());
  tables.known = std::move(tokens).value();
  return tables;
}

struct LeftNextTo {
  std::string_view family;  // the beginning of the family's name
  // The beginning of the name of a folder next to the checkpoint. Empty: the checkpoint's own
  // folder.
  std::string_view folder;
  std::string_view file;
  // The tokenizer's pieces are the model's words.
  bool has_words = false;
  // Another form of the file before, which comes first.
  bool repeats = false;
};
constexpr std::array<LeftNextTo, 10> kLeftNextTo = {{{"bert", "", "vocab.txt", true},
                                                     {"bert", "", "tokenizer.json", true, true},
                                                     {"gpt2", "", "tokenizer.json", true},
                                                     {"gpt2", "", "vocab.json", true, true},
                                                     {"fairseq", "", "bpecodes"},
                                                     {"fairseq", "", "code"},
                                                     {"fairseq", "", "sentencepiece.bpe.model"},
                                                     {"icefall-", "lang_bpe_", "bpe.model"},
                                                     {"espnet-", "", "bpe.model"},
                                                     {"speechbrain-", "", "tokenizer.ckpt"}}};

}  // namespace

FoundTokenizer TokenizerNextTo(const std::string& checkpoint, const std::string& family) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(checkpoint).parent_path();
  std::error_code error;
  std::vector<FoundTokenizer> found;
  for (const LeftNextTo& left : kLeftNextTo) {
    if (!family.starts_with(left.family) || (left.repeats && !found.empty())) continue;
    const auto look = [&](const fs::path& file) {
      if (fs::is_regular_file(file, error)) found.push_back({file.string(), left.has_words});
    };
    if (left.folder.empty()) {
      look(folder / left.file);
      continue;
    }
    const auto entries = ListFolder(folder);
    if (!entries.ok()) continue;  // no such folder
    for (const fs::path& entry : *entries) {
      if (entry.filename().string().starts_with(left.folder)) look(entry / left.file);
    }
  }
  return found.size() == 1 ? found.front() : FoundTokenizer();
}

namespace {

// The object of a JSON file; null if there is no such file.
Result<JsonValue> ReadJsonIfThere(const std::filesystem::path& path) {
  std::error_code missing;
  if (!std::filesystem::exists(path, missing)) return JsonValue();
  KINGLET_ASSIGN_OR_RETURN(const std::string text, ReadWholeText(path.string()));
  Result<JsonValue> file = ParseTokenizerJson(text);
  return file.ok() ? std::move(file) : InFile(path.string(), file.status());
}

// A tokenizer.json, or the vocabulary of vocab.json with the merges next to it.
Status ReadJson(const std::string& path, std::string_view bytes, TextTables& tables) {
  KINGLET_ASSIGN_OR_RETURN(const JsonValue file, ParseTokenizerJson(bytes));
  if (ValueAt(file, {"model", "type"}).IsText("WordPiece")) {
    KINGLET_ASSIGN_OR_RETURN(tables.method, ReadWordPieceJson(file));
    return {};
  }
  if (ValueAt(file, {"model"}).is_object()) {
    KINGLET_ASSIGN_OR_RETURN(tables.method, ReadBytePieceJson(file));
    return {};
  }
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  KINGLET_ASSIGN_OR_RETURN(const std::string merges,
                           ReadWholeText((folder / "merges.txt").string()));
  KINGLET_ASSIGN_OR_RETURN(const JsonValue settings,
                           ReadJsonIfThere(folder / "tokenizer_config.json"));
  KINGLET_ASSIGN_OR_RETURN(tables.method, ReadVocabularyAndMerges(file, merges, settings));
  return {};
}

// The vocab.json whose merges the file has, if it is GPT-2's merges.txt.
std::string VocabularyOfMerges(const std::string& path) {
  const std::filesystem::path file(path);
  std::error_code missing;
  const auto vocabulary = file.parent_path() / "vocab.json";
  const bool has = file.filename() == "merges.txt" && std::filesystem::exists(vocabulary, missing);
  return has ? vocabulary.string() : std::string();
}

Result<TextTables> ReadTables(TokenizerChoice choice) {
  TextTables tables;
  tables.lower_case = choice.lower_case;
  const bool spaces = choice.name == "spaces" || choice.name == "words";
  if (spaces || choice.name == "wikitext" || choice.name == "characters") {
    tables.method = WordRule{spaces                      ? WordRule::Rule::kSpaces
                             : choice.name == "wikitext" ? WordRule::Rule::kWikiText
                                                         : WordRule::Rule::kCharacters};
    return tables;
  }
  if (std::string vocabulary = VocabularyOfMerges(choice.name); !vocabulary.empty()) {
    choice.name = std::move(vocabulary);
  }
  KINGLET_ASSIGN_OR_RETURN(const std::string bytes, ReadWholeText(choice.name, InputForm::kBytes));
  if (LooksLikeJsonObject(bytes)) {
    const Status read = ReadJson(choice.name, bytes, tables);
    if (!read.ok()) return InFile(choice.name, read);
  } else if (LooksLikeWordPieces(bytes)) {
    const std::string settings =
        (std::filesystem::path(choice.name).parent_path() / "tokenizer_config.json").string();
    std::error_code missing;
    std::string text;
    if (std::filesystem::exists(settings, missing)) {
      KINGLET_ASSIGN_OR_RETURN(text, ReadWholeText(settings));
    }
    Result<WordPieceTables> pieces = ReadWordPieces(bytes, text);
    if (!pieces.ok()) return InFile(choice.name, pieces.status());
    tables.method = std::move(pieces).value();
  } else if (LooksLikeProtobuf(bytes)) {
    Result<SentencePieceTables> pieces = ReadSentencePieceModel(bytes);
    if (!pieces.ok()) return InFile(choice.name, pieces.status());
    tables.method = std::move(pieces).value();
  } else {
    Result<MergeTables> merges = ReadCodes(choice, bytes);
    if (!merges.ok()) return InFile(choice.name, merges.status());
    tables.method = std::move(merges).value();
  }
  return tables;
}

}  // namespace

Result<TextTables> ReadTokenizer(const TokenizerChoice& choice) {
  return WithNextStep(ReadTables(choice),
                      "copy the file again, or give one of those that docs/TEXT.md lists");
}

}  // namespace kinglet

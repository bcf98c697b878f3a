#include "converters/texts/vocabulary_file.h"

#include <algorithm>
#include <new>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "converters/sources/input_file.h"
#include "converters/sources/npy.h"
#include "converters/sources/text_input.h"
#include "converters/texts/pickled_vocabulary.h"
#include "converters/texts/vocabulary_json.h"
#include "converters/texts/word_splitter.h"

namespace kinglet {
namespace {

constexpr std::string_view kOverwriteFlag = " #fairseq:overwrite";

// The word of a line "word count".
std::optional<std::string_view> FairseqWord(std::string_view line) {
  if (line.ends_with(kOverwriteFlag)) line.remove_suffix(kOverwriteFlag.size());
  const size_t space = line.rfind(' ');
  if (space == 0 || space == std::string_view::npos) return std::nullopt;
  const std::string_view count = line.substr(space + 1);
  const bool digits = !count.empty() && std::all_of(count.begin(), count.end(),
                                                    [](char c) { return c >= '0' && c <= '9'; });
  if (!digits) return std::nullopt;
  return line.substr(0, space);
}

std::optional<std::vector<std::string>> FairseqWords(const std::vector<std::string_view>& lines) {
  std::vector<std::string> words = {"<s>", "<pad>", "</s>", "<unk>"};
  for (const std::string_view line : lines) {
    const std::optional<std::string_view> word = FairseqWord(line);
    if (!word) return std::nullopt;
    words.emplace_back(*word);
  }
  return words;
}

Result<std::vector<std::string>> WordsOfArray(const std::string& path,
                                              std::span<const std::byte> bytes) {
  Result<NpyArray> array = ParseNpy(bytes);
  if (!array.ok()) return InFile(path, array.status());
  std::vector<std::string>* words = array->strings();
  if (words == nullptr || array->shape.size() != 1) {
    return Status::Refusal(
        KINGLET_INVALID_CHECKPOINT, path, "type", "an array of strings of one dimension",
        array->type + " of " + std::to_string(array->shape.size()) + " dimensions");
  }
  if (const auto empty = std::find(words->begin(), words->end(), ""); empty != words->end()) {
    return Status::Refusal(KINGLET_INVALID_CHECKPOINT, path,
                           "entry " + std::to_string(empty - words->begin()), "a word", "none");
  }
  return std::move(*words);
}

// Takes the carriage returns off, if every line ends with one.
bool TakeReturnsOff(std::string_view text, std::vector<std::string_view>& lines) {
  const bool all =
      !lines.empty() && std::all_of(lines.begin(), lines.end(), [&](const std::string_view& line) {
        // The last line may end with the text.
        return line.ends_with('\r') ||
               (lines.size() > 1 && &line == &lines.back() && !text.ends_with('\n'));
      });
  if (!all) return false;
  for (std::string_view& line : lines) {
    if (line.ends_with('\r')) line.remove_suffix(1);
  }
  return true;
}

bool LooksLikeJson(const std::string& path, std::string_view text) {
  if (path.ends_with(".json")) return true;
  const size_t first = text.find_first_not_of(" \t\r\n");
  // A list of words may also begin with the word "[PAD]".
  return first != text.npos && text[first] == '[' && ParseVocabularyJson(path, text).ok();
}

Result<std::vector<std::string>> WordsOfLines(const std::string& path, std::string_view text,
                                              std::vector<std::string>& notes) {
  std::vector<std::string_view> lines = LinesOf(text);
  if (TakeReturnsOff(text, lines)) {
    notes.push_back(path + ": every line ends with a carriage return, which is taken off");
  }
  if (lines.empty()) {
    return Status::Refusal(KINGLET_INVALID_CHECKPOINT, path, "line 1", "a word", "an empty file");
  }
  if (const auto empty = std::find(lines.begin(), lines.end(), ""); empty != lines.end()) {
    return Status::Refusal(KINGLET_INVALID_CHECKPOINT, path,
                           "line " + std::to_string(empty - lines.begin() + 1), "a word",
                           "an empty line (a JSON array of strings can hold a newline)");
  }
  if (std::optional<std::vector<std::string>> words = FairseqWords(lines)) {
    return std::move(*words);
  }
  return std::vector<std::string>(lines.begin(), lines.end());
}

Result<std::vector<std::string>> WordsOfText(const std::string& path, std::string_view text,
                                             std::vector<std::string>& notes) {
  const std::string_view content = WithoutByteOrderMark(text);
  if (content.size() != text.size()) {
    notes.push_back(path + ": begins with a byte order mark, which is taken off");
  }
  return LooksLikeJson(path, content) ? ParseVocabularyJson(path, content)
                                      : WordsOfLines(path, content, notes);
}

Result<std::vector<std::string>> ReadWords(const std::string& path,
                                           std::vector<std::string>& notes) {
  const Result<InputFile> file = InputFile::Open(path);
  if (file.ok() && LooksPickled(*file)) return ReadPickledVocabulary(path);
  KINGLET_ASSIGN_OR_RETURN(const std::string text, ReadWholeText(path, InputForm::kBytes));
  const auto bytes = std::as_bytes(std::span<const char>(text));
  return LooksLikeNpy(bytes) ? WordsOfArray(path, bytes) : WordsOfText(path, text, notes);
}

}  // namespace

Result<VocabularyFile> ReadVocabularyFile(const std::string& path) {
  try {
    VocabularyFile vocabulary;
    KINGLET_ASSIGN_OR_RETURN(vocabulary.words, ReadWords(path, vocabulary.notes));
    return vocabulary;
  } catch (const std::bad_alloc&) {
    return Status::Refusal(KINGLET_OUT_OF_MEMORY, path, "reading", "memory for the words", "none");
  }
}

}  // namespace kinglet

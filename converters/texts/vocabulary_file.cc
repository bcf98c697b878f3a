#include "converters/texts/vocabulary_file.h"

#include <algorithm>
#include <array>
#include <new>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "converters/checkpoints/npy.h"
#include "converters/checkpoints/refuse_checkpoint.h"
#include "converters/checkpoints/text_input.h"
#include "converters/texts/pickled_vocabulary.h"
#include "converters/texts/vocabulary_json.h"
#include "converters/texts/word_list.h"
#include "converters/texts/word_splitter.h"
#include "format/input_file.h"
#include "format/message_text.h"
#include "format/utf8.h"

namespace kinglet {
namespace {

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

bool LooksLikeJson(const std::string& path, std::string_view text) {
  if (path.ends_with(".json")) return true;
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == text.npos || (text[first] != '[' && text[first] != '{')) return false;
  // A list of words may also begin with the word "[PAD]".
  return ParseVocabularyJson(path, text).ok();
}

Result<WordList> ListOfLines(const std::string& path, std::string_view text,
                             const VocabularyUse& use) {
  const bool fairseq = use.numbers != WordNumbers::kByLine && LooksLikeFairseqList(text);
  if (HasFairseqFlag(text)) return ReadFairseqList(path, text);
  if (!fairseq) return ReadWordList(path, text);
  Result<WordList> list = ReadWordList(path, text);
  const bool ids = list.ok() && list->form == WordList::Form::kIds;
  Result<WordList> dictionary = ReadFairseqList(path, text);
  if (use.numbers == WordNumbers::kFairseq) {
    // A list that contains fairseq's own words is not one of fairseq's dictionaries.
    return dictionary.ok() || !ids ? std::move(dictionary) : std::move(list);
  }
  const bool fits = dictionary.ok() && dictionary->words.size() == use.words &&
                    !(list.ok() && list->words.size() == use.words);
  if (!fits) return list;
  dictionary->notes.push_back(path +
                              ": read as fairseq's dictionary, as the model has four words more");
  return dictionary;
}

Result<std::vector<std::string>> WordsOfLines(const std::string& path, std::string_view text,
                                              const VocabularyUse& use,
                                              std::vector<std::string>& notes) {
  KINGLET_ASSIGN_OR_RETURN(WordList list, ListOfLines(path, text, use));
  notes.insert(notes.end(), list.notes.begin(), list.notes.end());
  if (list.form == WordList::Form::kIds && use.words > 0) {
    const size_t dropped = DropDisambiguation(use.words, list.words);
    if (dropped > 0) {
      notes.push_back(path + ": the disambiguation symbols after the model's words (" +
                      std::to_string(dropped) + ") are omitted");
    }
  }
  return std::move(list.words);
}

constexpr std::string_view kUnknownName = "<unk>";
constexpr std::array<std::string_view, 5> kUnknownNames = {"<UNK>", "xxunk", "_unk_", "<oov>",
                                                           "<OOV>"};

// The name of a word that no text should contain.
std::string NumberedWord(std::string_view word, size_t id) {
  return std::string(word) + " (id " + std::to_string(id) + ")";
}

// Class Vocabulary refuses words that are not UTF-8 too, but cannot name the file.
Status CheckWords(const std::string& path, std::vector<std::string>& words,
                  std::vector<std::string>& notes) {
  std::unordered_map<std::string, size_t> last;
  size_t repeated = 0, example = 0;
  for (size_t i = 0; i < words.size(); ++i) {
    if (!IsUtf8(words[i])) {
      return Status::Refusal(KINGLET_INVALID_CHECKPOINT, path, Numbered("word", i),
                             "a text in UTF-8",
                             Quoted(words[i]) + " (write a JSON array of strings in UTF-8)");
    }
    const auto [place, added] = last.try_emplace(words[i], i);
    if (added) continue;
    const size_t before = std::exchange(place->second, i);
    words[before] = NumberedWord(words[before], before);
    if (repeated++ == 0) example = i;
  }
  if (repeated == 0) return {};
  notes.push_back(
      path + ": " + Quoted(words[example]) +
      (repeated > 1 ? " and " + std::to_string(repeated - 1) + " other words stand" : " stands") +
      " more than once: texts are read with the last id of the word");
  return {};
}

void NameUnknownId(size_t id, std::vector<std::string>& words, std::vector<std::string>& notes) {
  if (words[id] == kUnknownName) return;
  const auto other = std::find(words.begin(), words.end(), kUnknownName);
  if (other != words.end()) {
    *other = NumberedWord(kUnknownName, static_cast<size_t>(other - words.begin()));
  }
  notes.push_back("the word for unknown words, " + Quoted(words[id]) + " (id " +
                  std::to_string(id) + "), is named <unk>");
  words[id] = kUnknownName;
}

void FindUnknownWord(const std::optional<uint64_t>& stated, VocabularyFile& file) {
  if (stated && *stated < file.words.size()) {
    NameUnknownId(*stated, file.words, file.notes);
    return;
  }
  const auto find = [&](std::string_view word) {
    return std::find(file.words.begin(), file.words.end(), word);
  };
  if (find(kUnknownName) != file.words.end()) return;
  for (const std::string_view name : kUnknownNames) {
    const auto word = find(name);
    if (word == file.words.end()) continue;
    NameUnknownId(static_cast<size_t>(word - file.words.begin()), file.words, file.notes);
    return;
  }
}

Result<std::vector<std::string>> WordsOfText(const std::string& path, std::string_view text,
                                             const VocabularyUse& use,
                                             std::vector<std::string>& notes) {
  const std::string_view content = WithoutByteOrderMark(text);
  if (content.size() != text.size()) {
    notes.push_back(path + ": begins with a byte order mark, which is taken off");
  }
  return LooksLikeJson(path, content) ? ParseVocabularyJson(path, content)
                                      : WordsOfLines(path, content, use, notes);
}

Result<std::vector<std::string>> ReadWords(const std::string& path, const VocabularyUse& use,
                                           std::vector<std::string>& notes,
                                           std::optional<uint64_t>& unknown) {
  const Result<InputFile> file = InputFile::Open(path);
  if (file.ok() && LooksPickled(*file)) {
    KINGLET_ASSIGN_OR_RETURN(PickledVocabulary pickled, ReadPickledVocabulary(path));
    unknown = pickled.unknown;
    return std::move(pickled.words);
  }
  KINGLET_ASSIGN_OR_RETURN(const std::string text, ReadWholeText(path, InputForm::kBytes));
  const auto bytes = std::as_bytes(std::span<const char>(text));
  return LooksLikeNpy(bytes) ? WordsOfArray(path, bytes) : WordsOfText(path, text, use, notes);
}

}  // namespace

Status NameUnknownWord(const std::string& word, std::vector<std::string>& words,
                       std::vector<std::string>& notes) {
  const auto found = std::find(words.begin(), words.end(), word);
  if (found != words.end()) {
    NameUnknownId(static_cast<size_t>(found - words.begin()), words, notes);
    return {};
  }
  const bool named =
      std::find(kUnknownNames.begin(), kUnknownNames.end(), word) != kUnknownNames.end() &&
      std::find(words.begin(), words.end(), kUnknownName) != words.end();
  if (named) return {};
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "convert", "unknown", "a word of the vocabulary",
                         Quoted(word) + (words.empty() ? " and no vocabulary (give it with --vocab)"
                                                       : " (`kinglet predict` prints words)"));
}

Result<VocabularyFile> ReadVocabularyFile(const std::string& path, const VocabularyUse& use) {
  try {
    VocabularyFile vocabulary;
    std::optional<uint64_t> unknown;
    KINGLET_ASSIGN_OR_RETURN(vocabulary.words,
                             WithNextStep(ReadWords(path, use, vocabulary.notes, unknown),
                                          "write one word a line, or a JSON array of strings: "
                                          "docs/CHECKPOINTS.md#vocabularies"));
    KINGLET_RETURN_IF_ERROR(CheckWords(path, vocabulary.words, vocabulary.notes));
    FindUnknownWord(unknown, vocabulary);
    return vocabulary;
  } catch (const std::bad_alloc&) {
    return Status::Refusal(KINGLET_OUT_OF_MEMORY, path, "reading", "memory for the words", "none");
  }
}

}  // namespace kinglet

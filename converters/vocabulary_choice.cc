#include "converters/vocabulary_choice.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

#include "converters/families/families.h"
#include "converters/texts/corpus_vocabulary.h"
#include "converters/texts/text_size.h"
#include "converters/texts/token_file.h"
#include "converters/texts/word_splitter.h"
#include "format/message_text.h"
#include "runtime/text/lower_case.h"
#include "runtime/text/marks.h"

namespace kinglet {
namespace {

// "awd-lstm, pytorch-examples": the families that number words by their texts.
std::string OrderedFamilies() {
  std::string names;
  for (const Family* family : Families()) {
    if (family->word_order == WordOrder::kUnknown) continue;
    names += (names.empty() ? "" : ", ") + std::string(family->name);
  }
  return names;
}

Result<std::vector<std::string>> WordsOfTexts(const std::vector<std::string>& texts,
                                              const std::string& family,
                                              std::vector<std::string>& notes) {
  const Family* known = FamilyNamed(family);
  if (known == nullptr || known->word_order == WordOrder::kUnknown) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "convert", "vocab-from",
                           "a model of " + OrderedFamilies() +
                               ", which number words by their texts (--vocab reads a file)",
                           family);
  }
  if (known->word_order == WordOrder::kByCountThenCharacters && texts.size() > 1) {
    notes.push_back("the words are those of " + texts.front() +
                    ", as in the framework, which makes no word of the other texts");
  }
  return VocabularyFromTexts(texts, known->word_order);
}

}  // namespace

VocabularyUse UseOf(const std::string& family, const ModelDraft& draft) {
  const Family* known = FamilyNamed(family);
  const WordNumbers numbers = family == kRecipeFamily ? WordNumbers::kEither
                              : known == nullptr      ? WordNumbers::kByLine
                                                      : known->word_numbers;
  return {numbers, draft.description.vocabulary_size};
}

void NoteMissingWords(const ModelDraft& draft, std::vector<std::string>& notes) {
  if (IsMaskedModel(draft.description)) return;  // its tokenizer knows the words
  const auto has = [&](std::string_view word) {
    return std::find(draft.vocabulary.begin(), draft.vocabulary.end(), word) !=
           draft.vocabulary.end();
  };
  if (!draft.description.start_token && !has(kEndOfLine) && !has(kSentenceEnd) && !has("\n")) {
    notes.emplace_back(
        "the vocabulary has neither <eos> nor </s>: the end of a line in a text is no token");
  }
  if (!has("<unk>")) {
    notes.emplace_back(
        "the vocabulary has no <unk>: a text with a word that it lacks is refused; --ids reads "
        "texts as ids, --unknown names the word for unknown words");
  }
}

void NoteCapitals(const ModelDraft& draft, std::vector<std::string>& notes) {
  if (!draft.tokenizer || !draft.tokenizer->lower_case) return;
  Marks marks;
  for (const std::string& word : draft.vocabulary) marks.Add(word);
  size_t found = 0;
  std::string example;
  for (const std::string& word : draft.vocabulary) {
    if (LowerCase(word, marks).text != word && found++ == 0) example = word;
  }
  if (found == 0) return;
  notes.push_back("no lower-cased text has the vocabulary's words with capital letters, " +
                  Quoted(example) +
                  (found > 1 ? " and " + std::to_string(found - 1) + " others" : std::string()));
}

Status NotePieces(const ModelDraft& draft, std::vector<std::string>& notes) {
  if (draft.tokenizer || draft.vocabulary.empty() || IsMaskedModel(draft.description)) return {};
  KINGLET_ASSIGN_OR_RETURN(const VocabularySegments packed, Vocabulary::Pack(draft.vocabulary));
  KINGLET_ASSIGN_OR_RETURN(const Vocabulary vocabulary,
                           Vocabulary::FromSegments(static_cast<uint32_t>(draft.vocabulary.size()),
                                                    packed.words, packed.ranks));
  const PieceMarks marks = PieceMarksOf(vocabulary);
  if (marks.mark.empty()) return {};
  notes.push_back("the vocabulary has pieces of words, marked by \"" + std::string(marks.mark) +
                  "\": a text must be split into them before; --tokenizer splits texts");
  return {};
}

Status ChooseVocabulary(const ConvertOptions& options, const std::string& family, ModelDraft& draft,
                        std::vector<std::string>& notes) {
  const std::vector<std::string>& texts = options.vocabulary_texts;
  const auto name_unknown = [&] {
    return options.unknown_word.empty()
               ? Status()
               : NameUnknownWord(options.unknown_word, draft.vocabulary, notes);
  };
  if (options.vocabulary.empty() && texts.empty()) return name_unknown();
  if (texts.empty()) {
    KINGLET_ASSIGN_OR_RETURN(VocabularyFile file,
                             ReadVocabularyFile(options.vocabulary, UseOf(family, draft)));
    draft.vocabulary = std::move(file.words);
    notes.insert(notes.end(), file.notes.begin(), file.notes.end());
  } else {
    KINGLET_ASSIGN_OR_RETURN(draft.vocabulary, WordsOfTexts(texts, family, notes));
  }
  const uint64_t expected = draft.description.vocabulary_size;
  if (draft.vocabulary.size() != expected) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "vocabulary",
                           texts.empty() ? options.vocabulary : texts.front(),
                           std::to_string(expected) + " words as the model has",
                           std::to_string(draft.vocabulary.size()) +
                               (texts.empty() ? " (give the list of the model's own training)"
                                              : " (give the texts of the model's own training)"));
  }
  KINGLET_RETURN_IF_ERROR(name_unknown());
  NoteMissingWords(draft, notes);
  return {};
}

}  // namespace kinglet

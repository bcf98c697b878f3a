// Which words a converted model gets, and what the user should know about them.
#ifndef KINGLET_CONVERTERS_VOCABULARY_CHOICE_H_
#define KINGLET_CONVERTERS_VOCABULARY_CHOICE_H_

#include <string>
#include <string_view>
#include <vector>

#include "converters/convert.h"
#include "converters/texts/vocabulary_file.h"
#include "format/writer.h"
#include "kinglet/status.h"

namespace kinglet {

// The family in the provenance of a model that a recipe describes.
inline constexpr std::string_view kRecipeFamily = "recipe";

// How the vocabulary of a model of this family is to be read.
VocabularyUse UseOf(const std::string& family, const ModelDraft& draft);

// Gives the draft the words of options.vocabulary, or those of options.vocabulary_texts in the
// order of the family's framework; without both the draft does not change. Adds notes for the user:
// which entries of the file were dropped, and what a vocabulary without a word for the end of a
// line or for unknown words means. Errors: KINGLET_INVALID_ARGUMENT for another number of words
// than the model's, and for texts where the framework does not number words by texts; those of the
// readers.
Status ChooseVocabulary(const ConvertOptions& options, const std::string& family, ModelDraft& draft,
                        std::vector<std::string>& notes);

// The notes about words that every text needs and the draft's vocabulary lacks.
void NoteMissingWords(const ModelDraft& draft, std::vector<std::string>& notes);
// Notes words with capital letters, which no text has that is lower-cased.
void NoteCapitals(const ModelDraft& draft, std::vector<std::string>& notes);
// Notes pieces of words in a draft without a tokenizer, which splits no text into them.
Status NotePieces(const ModelDraft& draft, std::vector<std::string>& notes);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_VOCABULARY_CHOICE_H_

// Vocabularies as the frameworks store them.
#ifndef KINGLET_CONVERTERS_TEXTS_VOCABULARY_FILE_H_
#define KINGLET_CONVERTERS_TEXTS_VOCABULARY_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "kinglet/status.h"

namespace kinglet {

struct VocabularyFile {
  std::vector<std::string> words;  // in id order
  std::vector<std::string> notes;  // for the user: what was dropped or renamed
};

// How a model's framework numbers the words of lines "word count".
enum class WordNumbers : uint8_t {
  kByLine,
  kFairseq,  // fairseq's own four words come first
  kEither,   // by the number of words
};

// Known properties of the model that the words are for.
struct VocabularyUse {
  WordNumbers numbers = WordNumbers::kByLine;
  uint64_t words = 0;  // the size of the model's vocabulary; 0: unknown
};

// Reads one of
//   text      a list of words (word_list.h), without the byte order mark that may begin the file;
//             a fairseq dictionary if `use` asks for it, or if the text has fairseq's flag.
//             Disambiguation symbols after the model's words are omitted from lists with ids
//   JSON      an array of strings, for words with a blank or a newline, or an object of words
//             and ids (vocabulary_json.h)
//   .npy      a NumPy array of strings
//   .pkl or a torch.save file: a pickled vocabulary (converters/texts/pickled_vocabulary.h)
// A word that stands several times belongs to the last of its ids, as in the frameworks; the words
// of the others become "word (id 4)". The word for unknown words becomes <unk>
// (NameUnknownWord): the word whose id a pickle states, or else <UNK>, xxunk (fastai), _unk_, <oov>
// or <OOV> of a list without <unk>. Errors: KINGLET_NOT_FOUND, KINGLET_IO_ERROR,
// KINGLET_OUT_OF_MEMORY; KINGLET_INVALID_CHECKPOINT, naming the line or entry, also for a word that
// is not UTF-8.
Result<VocabularyFile> ReadVocabularyFile(const std::string& path, const VocabularyUse& use = {});

// Gives the words' `word` the name <unk>, which text with a word that the vocabulary lacks is read
// as. Another <unk> becomes "<unk> (id 4)". Does nothing if ReadVocabularyFile has named it.
// Errors: KINGLET_INVALID_ARGUMENT if there is no such word.
Status NameUnknownWord(const std::string& word, std::vector<std::string>& words,
                       std::vector<std::string>& notes);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_TEXTS_VOCABULARY_FILE_H_

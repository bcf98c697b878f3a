// Vocabularies as the training codes store them.
#ifndef KINGLET_CONVERTERS_TEXTS_VOCABULARY_FILE_H_
#define KINGLET_CONVERTERS_TEXTS_VOCABULARY_FILE_H_

#include <string>
#include <vector>

#include "kinglet/status.h"

namespace kinglet {

struct VocabularyFile {
  std::vector<std::string> words;  // in id order
  std::vector<std::string> notes;  // what was taken off, for the user
};

// Reads one of
//   text      one word per line: all bytes of the line. A byte order mark at the start of the file
//             is taken off, and carriage returns where every line ends with one
//   JSON      an array of strings, for words that hold a newline (vocabulary_json.h)
//   dict.txt  a fairseq dictionary, recognised by every line being "word count" (the count follows
//             the last space; " #fairseq:overwrite" may follow the count). fairseq gives the ids 0
//             to 3 to <s> <pad> </s> <unk>, which the file lacks: they are put before its words
//             (a byte order mark and carriage returns as in a text)
//   .npy      a NumPy array of strings
//   .pkl or a torch.save file: a pickled Vocab object (converters/texts/pickled_vocabulary.h)
// Does not look for repeated words: Vocabulary refuses them. Errors: KINGLET_NOT_FOUND,
// KINGLET_IO_ERROR, KINGLET_INVALID_CHECKPOINT (naming the line or entry), KINGLET_OUT_OF_MEMORY.
Result<VocabularyFile> ReadVocabularyFile(const std::string& path);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_TEXTS_VOCABULARY_FILE_H_

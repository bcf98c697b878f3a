// Vocabularies as the training codes store them.
#ifndef KINGLET_CONVERTERS_TEXTS_VOCABULARY_FILE_H_
#define KINGLET_CONVERTERS_TEXTS_VOCABULARY_FILE_H_

#include <string>
#include <vector>

#include "kinglet/status.h"

namespace kinglet {

// The words in id order, from one of
//   text      one word per line: all bytes of the line
//   dict.txt  a fairseq dictionary, recognised by every line being "word count" (the count follows
//             the last space; " #fairseq:overwrite" may follow the count). fairseq gives the ids 0
//             to 3 to <s> <pad> </s> <unk>, which the file lacks: they are put before its words
//   .npy      a NumPy array of strings
//   .pkl or a torch.save file: a pickled Vocab object (converters/texts/pickled_vocabulary.h)
// Does not look for repeated words: Vocabulary refuses them. Errors: KINGLET_NOT_FOUND,
// KINGLET_IO_ERROR, KINGLET_INVALID_CHECKPOINT (naming the line or entry), KINGLET_OUT_OF_MEMORY.
Result<std::vector<std::string>> ReadVocabularyFile(const std::string& path);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_TEXTS_VOCABULARY_FILE_H_

// A vocabulary from a file of the training code.
#ifndef KINGLET_CONVERTERS_TEXTS_VOCABULARY_FILE_H_
#define KINGLET_CONVERTERS_TEXTS_VOCABULARY_FILE_H_

#include <string>
#include <vector>

#include "kinglet/status.h"

namespace kinglet {

// The words in id order, from one of
//   text     one word per line, every byte of it but the newline
//   dict.txt fairseq's dictionary, recognised by every line being "word count" (the count is behind
//            the last space, "#fairseq:overwrite" may follow): its ids start behind the four
//            specials <s> <pad> </s> <unk>, which are put in front
//   .npy     an array of strings
//   .pkl     or a file of torch.save: a pickled Vocab object
//   (converters/texts/pickled_vocabulary.h)
// Repeated words are the vocabulary's to refuse. Errors: KINGLET_NOT_FOUND, KINGLET_IO_ERROR,
// KINGLET_INVALID_CHECKPOINT (naming the line or entry), KINGLET_OUT_OF_MEMORY.
Result<std::vector<std::string>> ReadVocabularyFile(const std::string& path);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_TEXTS_VOCABULARY_FILE_H_

// Pickled vocabularies: a list of words, a dict of words and ids, or an object with such a list or
// dict, alone or inside the framework's corpus: kimiyoung/transformer-xl's Vocab (also its
// attributes, which Hugging Face transformers writes as vocab.pkl or vocab.bin), torchtext's Vocab,
// the Dictionary of pytorch/examples.
#ifndef KINGLET_CONVERTERS_TEXTS_PICKLED_VOCABULARY_H_
#define KINGLET_CONVERTERS_TEXTS_PICKLED_VOCABULARY_H_

#include <string>
#include <vector>

#include "converters/checkpoints/input_file.h"
#include "kinglet/status.h"

namespace kinglet {

// Whether the file is named *.pkl or starts like a pickle or a torch.save file.
bool LooksPickled(const InputFile& file);

// The words in id order. No code in the file is executed. Errors:
// KINGLET_INVALID_CHECKPOINT naming the entry, KINGLET_IO_ERROR, KINGLET_OUT_OF_MEMORY.
Result<std::vector<std::string>> ReadPickledVocabulary(const std::string& path);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_TEXTS_PICKLED_VOCABULARY_H_

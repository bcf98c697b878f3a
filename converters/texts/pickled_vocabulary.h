// Pickled vocabularies: a list of words, a dict of words and ids, or an object with such a list or
// dict, alone or inside the framework's corpus: kimiyoung/transformer-xl's Vocab (also its
// attributes, which Hugging Face transformers writes as vocab.pkl or vocab.bin), torchtext's Vocab,
// the Dictionary of pytorch/examples and of flair.
#ifndef KINGLET_CONVERTERS_TEXTS_PICKLED_VOCABULARY_H_
#define KINGLET_CONVERTERS_TEXTS_PICKLED_VOCABULARY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "converters/checkpoints/pickle.h"
#include "format/input_file.h"
#include "kinglet/status.h"

namespace kinglet {

// Whether the file is named *.pkl or starts like a pickle or a torch.save file.
bool LooksPickled(const InputFile& file);

struct PickledVocabulary {
  std::vector<std::string> words;        // in id order
  std::optional<uint64_t> unknown = {};  // the id for words that it lacks, if the object states it
};

// No code in the file is executed. Errors: KINGLET_INVALID_CHECKPOINT naming the entry,
// KINGLET_IO_ERROR, KINGLET_OUT_OF_MEMORY.
Result<PickledVocabulary> ReadPickledVocabulary(const std::string& path);
// The vocabulary that a pickle is or holds. `path` names its file in messages. Errors:
// KINGLET_INVALID_CHECKPOINT naming the entry.
Result<PickledVocabulary> WordsOfPickle(const std::string& path, const PickleNode& root);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_TEXTS_PICKLED_VOCABULARY_H_

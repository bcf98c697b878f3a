// The vocabulary of kimiyoung/transformer-xl as it is pickled: the attributes of its Vocab object,
// which Hugging Face's library writes as vocab.pkl (pickle) or vocab.bin (torch.save), or the
// object itself, alone or in the training code's corpus (cache.pt).
#ifndef KINGLET_CONVERTERS_TEXTS_PICKLED_VOCABULARY_H_
#define KINGLET_CONVERTERS_TEXTS_PICKLED_VOCABULARY_H_

#include <string>
#include <vector>

#include "converters/sources/input_file.h"
#include "kinglet/status.h"

namespace kinglet {

// Whether the file is named *.pkl or starts like a pickle or a file of torch.save.
bool LooksPickled(const InputFile& file);

// The attribute `idx2sym`: the words in id order. Nothing is executed. Errors:
// KINGLET_INVALID_CHECKPOINT naming the entry, KINGLET_IO_ERROR, KINGLET_OUT_OF_MEMORY.
Result<std::vector<std::string>> ReadPickledVocabulary(const std::string& path);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_TEXTS_PICKLED_VOCABULARY_H_

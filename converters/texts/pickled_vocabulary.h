// Pickled vocabularies of kimiyoung/transformer-xl: the attributes of its Vocab object, which
// Hugging Face transformers writes as vocab.pkl (pickle) or vocab.bin (torch.save), or the Vocab
// object itself, alone or inside the training code's corpus (cache.pt).
#ifndef KINGLET_CONVERTERS_TEXTS_PICKLED_VOCABULARY_H_
#define KINGLET_CONVERTERS_TEXTS_PICKLED_VOCABULARY_H_

#include <string>
#include <vector>

#include "converters/sources/input_file.h"
#include "kinglet/status.h"

namespace kinglet {

// Whether the file is named *.pkl or starts like a pickle or a torch.save file.
bool LooksPickled(const InputFile& file);

// The words in id order: the attribute `idx2sym`. No code in the file is executed. Errors:
// KINGLET_INVALID_CHECKPOINT naming the entry, KINGLET_IO_ERROR, KINGLET_OUT_OF_MEMORY.
Result<std::vector<std::string>> ReadPickledVocabulary(const std::string& path);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_TEXTS_PICKLED_VOCABULARY_H_

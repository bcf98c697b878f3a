// The token lists that speech toolkits save next to their checkpoints.
#ifndef KINGLET_CONVERTERS_FAMILIES_TOKEN_LIST_H_
#define KINGLET_CONVERTERS_FAMILIES_TOKEN_LIST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "kinglet/status.h"

namespace kinglet {

// The pieces of icefall's tokens.txt ("piece id" lines, perhaps followed by symbols "#0", "#1", ..
// that no model has). Searched: the checkpoint's folder; the folders lang_* and data/lang_* in it
// and one and two folders up. Returns an empty list if none of them has `words` pieces. Errors:
// KINGLET_INVALID_CHECKPOINT naming the lists if several fit and differ; KINGLET_IO_ERROR.
Result<std::vector<std::string>> FindTokenList(const std::string& checkpoint, uint64_t words);

// The pieces of the SentencePiece model at `path`, by id. Errors: KINGLET_INVALID_CHECKPOINT,
// KINGLET_NOT_FOUND, KINGLET_IO_ERROR.
Result<std::vector<std::string>> ReadSentencePieces(const std::string& path);

// The pieces of a model called tokenizer.ckpt (SpeechBrain) in the checkpoint's folder, or in the
// configuration's. Returns an empty list if there is no model of `words` pieces.
Result<std::vector<std::string>> FindSentencePieces(const std::string& checkpoint,
                                                    const std::string& config, uint64_t words);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_TOKEN_LIST_H_

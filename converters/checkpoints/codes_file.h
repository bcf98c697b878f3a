// Code tables as text: one line per word with its M codes, integers separated by blanks. The code
// of Shu and Nakayama 2018 ("Compressing Word Embeddings via Deep Compositional Code Learning")
// exports them as <prefix>.codes.
#ifndef KINGLET_CONVERTERS_CHECKPOINTS_CODES_FILE_H_
#define KINGLET_CONVERTERS_CHECKPOINTS_CODES_FILE_H_

#include <memory>

#include "converters/checkpoints/checkpoint_tensors.h"
#include "format/input_file.h"
#include "kinglet/status.h"

namespace kinglet {

// Whether the start of the file has only digits, minus signs, blanks and newlines.
bool LooksLikeCodes(const InputFile& file);

// One tensor [words, M], named as the file without folder and extension, which keeps the file open.
// Checks the text: integers from 0 to 2^32 - 1, equally many in each line. Errors:
// KINGLET_INVALID_CHECKPOINT naming line and column (from 1), KINGLET_IO_ERROR.
Result<CheckpointTensors> CodesTensors(const std::shared_ptr<const InputFile>& file);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_CHECKPOINTS_CODES_FILE_H_

// Code tables as text: one line a word, of M integers separated by blanks, as Shu and Nakayama 2018
// ("Compressing Word Embeddings via Deep Compositional Code Learning") export <prefix>.codes.
#ifndef KINGLET_CONVERTERS_SOURCES_CODES_FILE_H_
#define KINGLET_CONVERTERS_SOURCES_CODES_FILE_H_

#include <memory>

#include "converters/sources/input_file.h"
#include "converters/sources/source_weights.h"
#include "kinglet/status.h"

namespace kinglet {

// Whether the file starts like such a text: with digits, blanks and ends of lines alone.
bool LooksLikeCodes(const InputFile& file);

// One tensor [words, M], called as the file without folder and extension, that keeps the file open.
// The whole text is checked: integers from 0 to 2^32 - 1, as many in each line as in the first.
// Errors: KINGLET_INVALID_CHECKPOINT naming line and column (from 1), KINGLET_IO_ERROR.
Result<SourceWeights> CodesTensors(const std::shared_ptr<const InputFile>& file);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_SOURCES_CODES_FILE_H_

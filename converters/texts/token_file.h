// Token ids and running text from files.
#ifndef KINGLET_CONVERTERS_TEXTS_TOKEN_FILE_H_
#define KINGLET_CONVERTERS_TEXTS_TOKEN_FILE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "kinglet/status.h"

namespace kinglet {

// Token ids from a file or a pipe: decimal numbers separated by ASCII white space, or a NumPy .npy
// array of integers (recognised by content). The caller checks that the ids are in its vocabulary.
// A file without ids is valid. Errors: KINGLET_NOT_FOUND, KINGLET_IO_ERROR, KINGLET_OUT_OF_MEMORY;
// KINGLET_INVALID_ARGUMENT naming the byte offset of the text that is not an id.
Result<std::vector<uint32_t>> ReadIds(const std::string& path);

// The ids of a text. `where` precedes the byte offset in errors.
Result<std::vector<uint32_t>> ParseIds(std::string_view text, const std::string& where);

// The ids of each line. A blank line gives an empty list; an empty line after the last newline is
// ignored. Errors: as ReadIds; KINGLET_INVALID_ARGUMENT names line and byte.
Result<std::vector<std::vector<uint32_t>>> ReadIdLines(const std::string& path);

// Calls `word` with the words of a text file, as WordSplitter splits it (texts/word_splitter.h),
// but with long words complete. The view is valid during the call; the first error that `word`
// returns ends the reading. The file is read in pieces: memory is about the longest word. Errors:
// KINGLET_NOT_FOUND, KINGLET_IO_ERROR, KINGLET_OUT_OF_MEMORY, and those of `word`.
Status ForEachWord(const std::string& path, const std::function<Status(std::string_view)>& word);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_TEXTS_TOKEN_FILE_H_

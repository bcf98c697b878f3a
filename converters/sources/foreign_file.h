// Files that people give in place of a checkpoint, and what to do about each.
#ifndef KINGLET_CONVERTERS_SOURCES_FOREIGN_FILE_H_
#define KINGLET_CONVERTERS_SOURCES_FOREIGN_FILE_H_

#include <string>

#include "converters/sources/input_file.h"

namespace kinglet {

// What the file is, by its first bytes, and the next step, for the end of a message: "a Git LFS
// pointer (run `git lfs pull`)". Of a file that is not known, its first bytes.
std::string DescribeForeign(const InputFile& file);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_SOURCES_FOREIGN_FILE_H_

// Files that people give in place of a checkpoint or a text, and what to do about each.
#ifndef KINGLET_CONVERTERS_CHECKPOINTS_FOREIGN_FILE_H_
#define KINGLET_CONVERTERS_CHECKPOINTS_FOREIGN_FILE_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "converters/checkpoints/input_file.h"

namespace kinglet {

// What the file is, by its first bytes, and the next step, for the end of a message: "a Git LFS
// pointer (run `git lfs pull`)". Of a file that is not known, its first bytes.
std::string DescribeForeign(const InputFile& file);

// What bytes that begin so are, if they are no text, and the command that makes a text of the file
// `name`: "an xz file (`xz -dc a.xz > text.txt` unpacks it)". "": they may be text.
std::string DescribeNoText(std::string_view head, const std::string& name);
// How many first bytes DescribeNoText reads, and whether more of them than `head` might change its
// answer "" to another.
inline constexpr size_t kNoTextHead = 512;
bool MayBeNoText(std::string_view head);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_CHECKPOINTS_FOREIGN_FILE_H_

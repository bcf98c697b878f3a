// Files that users give instead of a checkpoint or a text, with a next step for each.
#ifndef KINGLET_CONVERTERS_CHECKPOINTS_FOREIGN_FILE_H_
#define KINGLET_CONVERTERS_CHECKPOINTS_FOREIGN_FILE_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "format/input_file.h"

namespace kinglet {

// The kind of a file, by its first bytes, and the next step, for the end of a message: "a Git LFS
// pointer (run `git lfs pull`)". The first bytes of an unknown file.
std::string DescribeForeign(const InputFile& file);

// The kind of a file that begins with `head` and is not text, and the command that makes a text of
// the file `name`: "an xz file (`xz -dc a.xz > text.txt` unpacks it)". Empty if the bytes may be
// text.
std::string DescribeNoText(std::string_view head, const std::string& name);
// Whether controls that no text contains are at least one in 32 of the first bytes. Of compressed
// data they are one in 12.
bool LooksBinary(std::string_view head);
// The number of first bytes that both read, and whether more bytes than `head` may turn an empty
// result of DescribeNoText into another.
inline constexpr size_t kNoTextHead = 512;
bool MayBeNoText(std::string_view head);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_CHECKPOINTS_FOREIGN_FILE_H_

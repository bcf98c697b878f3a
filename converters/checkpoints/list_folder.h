// The names in a folder. std::filesystem::directory_iterator of GNU's library ends the process if
// memory runs out.
#ifndef KINGLET_CONVERTERS_CHECKPOINTS_LIST_FOLDER_H_
#define KINGLET_CONVERTERS_CHECKPOINTS_LIST_FOLDER_H_

#include <filesystem>
#include <vector>

#include "kinglet/status.h"

namespace kinglet {

// The paths of all entries of the folder except "." and "..", sorted. An empty `folder` is the
// current one. Errors: KINGLET_IO_ERROR. Throws std::bad_alloc.
Result<std::vector<std::filesystem::path>> ListFolder(const std::filesystem::path& folder);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_CHECKPOINTS_LIST_FOLDER_H_

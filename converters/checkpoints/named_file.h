// Files that another file names: recipes, and indexes of shards. A stranger may have written the
// file with the names, and the file that it names is read with the user's rights. So a name stays
// in one folder.
#ifndef KINGLET_CONVERTERS_CHECKPOINTS_NAMED_FILE_H_
#define KINGLET_CONVERTERS_CHECKPOINTS_NAMED_FILE_H_

#include <optional>
#include <string>

namespace kinglet {

// The path of the file `name` in `folder` ("": the current one) or in a folder below it. None for a
// name that leaves the folder: an absolute one, one with "..", and a link to somewhere else. A link
// from snapshots/*/ into blobs/, as the cache of huggingface_hub lays its folders out, stays.
std::optional<std::string> FileInFolder(const std::string& folder, const std::string& name);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_CHECKPOINTS_NAMED_FILE_H_

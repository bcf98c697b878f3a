// Files that another file names: recipes, and indexes of shards. A stranger may have written the
// file with the names, but the named files are read with the user's rights. So names may not leave
// one folder.
#ifndef KINGLET_CONVERTERS_CHECKPOINTS_NAMED_FILE_H_
#define KINGLET_CONVERTERS_CHECKPOINTS_NAMED_FILE_H_

#include <optional>
#include <string>

namespace kinglet {

// The path of the file `name` in `folder` ("": the current one) or in a folder below it. Returns
// nullopt for a name that leaves the folder: an absolute one, one with "..", and a link to another
// folder. A link from snapshots/*/ into blobs/, as in the cache of huggingface_hub, is allowed.
std::optional<std::string> FileInFolder(const std::string& folder, const std::string& name);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_CHECKPOINTS_NAMED_FILE_H_

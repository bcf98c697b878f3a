// Checks where a command will write its file, before it spends hours on work that it could not
// save.
#ifndef KINGLET_CONVERTERS_OUTPUT_PATH_H_
#define KINGLET_CONVERTERS_OUTPUT_PATH_H_

#include <string>
#include <vector>

#include "kinglet/status.h"

namespace kinglet {

// Messages begin with `what`. Errors: KINGLET_INVALID_ARGUMENT for an empty path, a folder, a
// device, or one of the `inputs`, even under another name (empty inputs are ignored);
// KINGLET_NOT_FOUND if the output's folder does not exist; KINGLET_IO_ERROR if it cannot be written
// to.
Status CheckOutputPath(const std::string& what, const std::string& output,
                       const std::vector<const std::string*>& inputs);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_OUTPUT_PATH_H_

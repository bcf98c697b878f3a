// Where a command may write its file: looked at before the work, so that hours are not spent on a
// file that cannot be kept.
#ifndef KINGLET_CONVERTERS_OUTPUT_PATH_H_
#define KINGLET_CONVERTERS_OUTPUT_PATH_H_

#include <initializer_list>
#include <string>

#include "kinglet/status.h"

namespace kinglet {

// KINGLET_INVALID_ARGUMENT for no path, a folder, a device or one of `inputs` (empty ones are
// passed over), by whatever name; KINGLET_NOT_FOUND for a folder that is not there;
// KINGLET_IO_ERROR for one that cannot be written to. The text starts with `what`.
Status CheckOutputPath(const std::string& what, const std::string& output,
                       std::initializer_list<const std::string*> inputs);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_OUTPUT_PATH_H_

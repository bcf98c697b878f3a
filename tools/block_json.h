// A model's blocks as JSON, tensors by name.
#ifndef KINGLET_TOOLS_BLOCK_JSON_H_
#define KINGLET_TOOLS_BLOCK_JSON_H_

#include "format/model_file.h"
#include "tools/json_lines.h"

namespace kinglet {

// Appends one object with "block" (the kind), "name" and the fields of that kind.
void AppendBlock(const Block& block, const ModelFile& file, JsonLine& line);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_BLOCK_JSON_H_

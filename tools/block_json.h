// A model's blocks as JSON.
#ifndef KINGLET_TOOLS_BLOCK_JSON_H_
#define KINGLET_TOOLS_BLOCK_JSON_H_

#include <functional>
#include <string_view>

#include "format/blocks.h"
#include "tools/json_lines.h"

namespace kinglet {

// Appends the value of a field that is a tensor: its name, for example.
using TensorWriter = std::function<void(TensorId id, std::string_view field, JsonLine& line)>;

// Appends one object with "block" (the kind), "name" and the fields of that kind.
void AppendBlock(const Block& block, const TensorWriter& tensor, JsonLine& line);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_BLOCK_JSON_H_

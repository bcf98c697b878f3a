// Writes a recipe's values as JSON. No destructor here allocates (json_value.h).
#ifndef KINGLET_CONVERTERS_RECIPE_RECIPE_TEXT_H_
#define KINGLET_CONVERTERS_RECIPE_RECIPE_TEXT_H_

#include <string>

#include "converters/checkpoints/json_value.h"

namespace kinglet {

// The JSON, with a newline at its end. A value that does not fit in 100 columns has its inner
// values on lines of their own, indented by `indent` spaces a level. Bytes that are not UTF-8
// become U+FFFD.
std::string RecipeText(const JsonValue& value, size_t indent);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_RECIPE_RECIPE_TEXT_H_

// Patterns of names: of tensors, and of options.
#ifndef KINGLET_CONVERTERS_NAME_PATTERN_H_
#define KINGLET_CONVERTERS_NAME_PATTERN_H_

#include <string_view>

namespace kinglet {

// Whether `name` fits `pattern`, in which * matches any text, also an empty one.
bool MatchesPattern(std::string_view pattern, std::string_view name);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_NAME_PATTERN_H_

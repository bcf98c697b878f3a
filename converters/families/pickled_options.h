// Options that a framework saved beside its tensors, as a dict or as an object with attributes.
#ifndef KINGLET_CONVERTERS_FAMILIES_PICKLED_OPTIONS_H_
#define KINGLET_CONVERTERS_FAMILIES_PICKLED_OPTIONS_H_

#include <string>
#include <string_view>
#include <vector>

#include "converters/checkpoints/pickle.h"
#include "converters/families/known_options.h"

namespace kinglet {

// The entry of a dict, or the attribute of an object; null if there is none.
NodeRef PickledOption(const PickleNode& options, std::string_view name);

// All of them, in the order of the file. A key that is not a text has its value's text as name.
std::vector<StatedOption> PickledOptions(const PickleNode& options);

// A value as StatedOption has it; lists of numbers and texts in brackets; of other values what they
// are.
std::string OptionText(const PickleNode& value);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_PICKLED_OPTIONS_H_

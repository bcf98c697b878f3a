// Options that a framework saved next to its tensors, as a dict or as an object with attributes.
#ifndef KINGLET_CONVERTERS_FAMILIES_PICKLED_OPTIONS_H_
#define KINGLET_CONVERTERS_FAMILIES_PICKLED_OPTIONS_H_

#include <string>
#include <string_view>
#include <vector>

#include "converters/checkpoints/pickle.h"
#include "converters/families/known_options.h"

namespace kinglet {

// The entry of a dict, or the attribute of an object; nullptr if there is none.
NodeRef PickledOption(const PickleNode& options, std::string_view name);

// All options, in the order of the file. The name of a key that is not a text is its OptionText.
std::vector<StatedOption> PickledOptions(const PickleNode& options);

// A value in the form of StatedOption; lists of numbers and texts in brackets; the kind of any
// other value.
std::string OptionText(const PickleNode& value);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_PICKLED_OPTIONS_H_

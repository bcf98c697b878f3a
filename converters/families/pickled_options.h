// Options that training code saved beside its tensors, as a dict or as an object with attributes.
#ifndef KINGLET_CONVERTERS_FAMILIES_PICKLED_OPTIONS_H_
#define KINGLET_CONVERTERS_FAMILIES_PICKLED_OPTIONS_H_

#include <string_view>

#include "converters/sources/pickle.h"

namespace kinglet {

// The entry of a dict, or the attribute of an object; null if there is none.
inline NodeRef PickledOption(const PickleNode& options, std::string_view name) {
  const auto* object = options.As<PickleObject>();
  if (object == nullptr) return options.Find(name);
  return object->state == nullptr ? nullptr : object->state->Find(name);
}

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_PICKLED_OPTIONS_H_

// A loaded model with all tensors read, which a conversion does later.
#ifndef KINGLET_TESTS_CONVERTERS_WITH_VALUES_H_
#define KINGLET_TESTS_CONVERTERS_WITH_VALUES_H_

#include <utility>

#include "converters/families/families.h"

namespace kinglet {

inline Result<LoadedModel> WithValues(Result<LoadedModel> loaded) {
  if (loaded.ok()) KINGLET_RETURN_IF_ERROR(ReadTensors(*loaded));
  return loaded;
}

}  // namespace kinglet

#endif  // KINGLET_TESTS_CONVERTERS_WITH_VALUES_H_

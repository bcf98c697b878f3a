// What the tests of this folder share: a tiny model's file, and functions that find nodes of a
// plan.
#ifndef KINGLET_TESTS_RUNTIME_LOWER_LOWERING_H_
#define KINGLET_TESTS_RUNTIME_LOWER_LOWERING_H_

#include <memory>

#include "format/writer.h"
#include "runtime/lower/lower.h"
#include "tests/support/model_builder.h"

namespace kinglet {

inline std::shared_ptr<const ModelFile> TinyFile(const TinyOptions& options) {
  return *ModelFile::FromBytes(*SerialiseModel(TinyMicronet(options)));
}

// The nodes whose operation is a T, in order.
template <class T>
std::vector<const T*> OpsOf(const Plan& plan) {
  std::vector<const T*> found;
  for (const Node& node : plan.nodes) {
    if (const T* op = std::get_if<T>(&node.op)) found.push_back(op);
  }
  return found;
}

}  // namespace kinglet

#endif  // KINGLET_TESTS_RUNTIME_LOWER_LOWERING_H_

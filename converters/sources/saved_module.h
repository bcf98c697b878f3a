// A torch.nn.Module that was pickled whole, walked as data: parameters by their state dict names,
// and plain attributes.
#ifndef KINGLET_CONVERTERS_SOURCES_SAVED_MODULE_H_
#define KINGLET_CONVERTERS_SOURCES_SAVED_MODULE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "converters/sources/checkpoint.h"
#include "converters/sources/pickle.h"
#include "kinglet/status.h"

namespace kinglet {

// The objects of a checkpoint that were pickled whole, for attributes that are not tensors; null
// where the file has none. They live as long as the checkpoint.
struct SavedModules {
  const PickleNode* network = nullptr;
  const PickleNode* criterion = nullptr;
};

// Whether the node is an object whose state has the dicts of a module.
bool IsModule(const PickleNode& node);

// The parameters and persistent buffers that module.state_dict() would give, each name after
// `prefix`. Entries that are None are left out. Errors: KINGLET_INVALID_CHECKPOINT for entries that
// are neither tensors nor modules, and for modules nested without end.
Result<StateDict> ModuleTensors(const PickleNode& module, const std::string& prefix);

// An attribute of the module, or null. REQUIRES: IsModule(module).
NodeRef ModuleAttribute(const PickleNode& module, std::string_view name);
// The same, where it is text, an integer, a number or a list of integers.
std::optional<std::string> TextAttribute(const PickleNode& module, std::string_view name);
std::optional<int64_t> IntegerAttribute(const PickleNode& module, std::string_view name);
std::optional<double> NumberAttribute(const PickleNode& module, std::string_view name);
std::optional<std::vector<int64_t>> IntegersAttribute(const PickleNode& module,
                                                      std::string_view name);
// Truth as Python has it of a bool and of a number.
std::optional<bool> BooleanAttribute(const PickleNode& module, std::string_view name);

// The submodule at a path like "rnns.0.module", or null.
NodeRef Submodule(const PickleNode& module, std::string_view path);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_SOURCES_SAVED_MODULE_H_

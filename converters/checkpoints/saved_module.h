// A pickled torch.nn.Module (torch.save(model)), read as data: its tensors under their state dict
// names, and its plain attributes.
#ifndef KINGLET_CONVERTERS_CHECKPOINTS_SAVED_MODULE_H_
#define KINGLET_CONVERTERS_CHECKPOINTS_SAVED_MODULE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "converters/checkpoints/checkpoint.h"
#include "converters/checkpoints/pickle.h"
#include "kinglet/status.h"

namespace kinglet {

// The pickled modules of a checkpoint, for attributes that are not tensors; nullptr if it has none.
// The modules live as long as the checkpoint.
struct SavedModules {
  const PickleNode* network = nullptr;
  const PickleNode* criterion = nullptr;
};

// Whether the node is an object whose state has a module's dicts of parameters and submodules.
bool IsModule(const PickleNode& node);

// The parameters and persistent buffers that module.state_dict() would give, with `prefix` before
// each name; entries that are None are omitted. Errors: KINGLET_INVALID_CHECKPOINT for parameters
// that are not tensors, submodules that are not modules, and modules that nest without end.
Result<StateDict> ModuleTensors(const PickleNode& module, const std::string& prefix);

// An attribute of the module, or nullptr. REQUIRES: IsModule(module).
NodeRef ModuleAttribute(const PickleNode& module, std::string_view name);
// An attribute as a C++ value; nullopt if it is missing or of another type (PickleNode::Integer).
std::optional<std::string> TextAttribute(const PickleNode& module, std::string_view name);
std::optional<int64_t> IntegerAttribute(const PickleNode& module, std::string_view name);
std::optional<double> NumberAttribute(const PickleNode& module, std::string_view name);
std::optional<std::vector<int64_t>> IntegersAttribute(const PickleNode& module,
                                                      std::string_view name);
// An attribute that is a bool, or a number, which is true unless it is 0.
std::optional<bool> BooleanAttribute(const PickleNode& module, std::string_view name);

// The submodule at a path like "rnns.0.module", or nullptr.
NodeRef Submodule(const PickleNode& module, std::string_view path);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_CHECKPOINTS_SAVED_MODULE_H_

// Checks of a pickled network: the classes of its modules and their attributes. The code of these
// classes, which PyTorch runs, is not in the file. So a family lists the classes that it knows, the
// paths where they may occur, and the values that their attributes may have. Anything else could
// change the network and is refused by name.
#ifndef KINGLET_CONVERTERS_FAMILIES_PICKLED_MODULES_H_
#define KINGLET_CONVERTERS_FAMILIES_PICKLED_MODULES_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "converters/checkpoints/saved_module.h"
#include "converters/families/known_options.h"
#include "kinglet/status.h"

namespace kinglet {

// A class and its attributes, besides those that every module has.
struct PickledClass {
  std::string_view name;  // without its package: "LSTM", "MemTransformerLM"
  OptionTable attributes;
};

// A path where modules of some classes may occur.
struct PickledPlace {
  std::string_view path;     // "layers.*.pos_ff", where * is a number; empty: the network itself
  std::string_view classes;  // names, separated by spaces
};

// The pickled networks that a family reads. REQUIRES of all spans: they live as long as the
// program.
struct PickledNetwork {
  std::span<const PickledPlace> places;     // of the network
  std::span<const PickledPlace> criterion;  // of the module that is second in a list
  std::span<const PickledClass> classes;    // of the framework's own files
};

// The classes of torch.nn that any family may name in PickledNetwork::places.
std::span<const PickledClass> TorchClasses();

// The tables of the framework's own classes, after those of its configurations.
std::vector<OptionTable> ClassOptions(const PickledNetwork& known,
                                      std::vector<OptionTable> configurations = {});

// Refuses a class, an attribute or a hook that `known` does not have. `known` is nullptr if the
// family reads no pickled modules. `checkpoint` names the file. `ignored` may be null. Errors:
// KINGLET_UNSUPPORTED.
Status CheckPickledModules(const PickledNetwork* known, const SavedModules& modules,
                           std::string_view family, const std::string& checkpoint,
                           IgnoredOptions* ignored);

// Refuses a number or bool of the network's module at `path` that is not `expected`. A module or an
// attribute that is missing agrees. `network` may be null. Errors: KINGLET_UNSUPPORTED.
Status CheckModuleAgrees(const PickleNode* network, const std::string& checkpoint,
                         const std::string& path, const std::string& name, double expected);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_PICKLED_MODULES_H_

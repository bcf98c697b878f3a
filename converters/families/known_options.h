// How a family treats the options that its framework saves with a network: one table for each kind
// of configuration. An option that changes the network and is in no table is refused, because
// kinglet would run another network without it.
#ifndef KINGLET_CONVERTERS_FAMILIES_KNOWN_OPTIONS_H_
#define KINGLET_CONVERTERS_FAMILIES_KNOWN_OPTIONS_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kinglet/status.h"

namespace kinglet {

// An option that changes the network and that kinglet runs with some values only.
struct FixedOption {
  std::string_view name;
  // As OptionText writes them, separated by "|"; "*" at the end of a text stands for any rest.
  // None, and an absent option, count as one of them, unless never_none lists the option.
  std::string_view values;
  // The value only names a network and does not describe it: a user who knows the network may
  // ignore the option.
  bool a_name = false;
};

// Names are separated by spaces and classified once.
struct OptionTable {
  std::string_view
      holds;  // the configuration that has the options, for the documentation: "args, cfg.model"
  std::string_view honoured;  // read by the family, which refuses values that it cannot run
  std::span<const FixedOption> fixed;
  // Options that cannot change the network's output. "*" at one end stands for any text.
  std::string_view ignored;
  // Options whose values the names and shapes of the tensors tell: sizes, what is shared.
  std::string_view by_tensors = {};
  // Options for which None differs from absence: the framework behaves differently, or fails.
  std::string_view never_none = {};
};

// The names of a list.
std::vector<std::string_view> OptionNames(std::string_view names);

// An option of a checkpoint. The value is as Python writes it: None, True, 3, 0.1, 'text'; a float
// without a fraction as an integer.
struct StatedOption {
  std::string name, value;
};

// The options that the user has ignored because kinglet does not know them (--ignore-option).
struct IgnoredOptions {
  std::vector<std::string> names;
  std::vector<std::string> met = {};  // those of the names that a checkpoint has
};

// Refuses options with values that make a network which kinglet does not run, by name, and options
// that the table does not have. `what` and `where` begin the message: "checkpoint", "args.".
// `ignored` may be null. Errors: KINGLET_UNSUPPORTED.
Status CheckOptions(const OptionTable& table, const std::string& what, const std::string& where,
                    std::span<const StatedOption> stated, IgnoredOptions* ignored);

// Refuses names that no checkpoint had as an unknown option. Errors: KINGLET_INVALID_ARGUMENT.
Status CheckAllMet(const IgnoredOptions& ignored);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_KNOWN_OPTIONS_H_

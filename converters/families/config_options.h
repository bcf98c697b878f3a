// The options of a configuration file, checked against a family's table.
#ifndef KINGLET_CONVERTERS_FAMILIES_CONFIG_OPTIONS_H_
#define KINGLET_CONVERTERS_FAMILIES_CONFIG_OPTIONS_H_

#include <string>

#include "converters/checkpoints/config_file.h"
#include "converters/families/known_options.h"
#include "kinglet/status.h"

namespace kinglet {

// Refuses options that the table does not have, or with another value. `section` comes before names
// in messages: "lm_conf, ". `ignored` may be null. Errors: KINGLET_UNSUPPORTED.
Status CheckConfig(const OptionTable& table, const ConfigFile& file, IgnoredOptions* ignored,
                   const std::string& section = "");

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_CONFIG_OPTIONS_H_

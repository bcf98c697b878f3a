#include "converters/families/config_options.h"

#include <vector>

namespace kinglet {

Status CheckConfig(const OptionTable& table, const ConfigFile& file, IgnoredOptions* ignored,
                   const std::string& section) {
  std::vector<StatedOption> stated;
  for (const std::string& key : file.Keys()) stated.push_back({key, file.PythonText(key)});
  return CheckOptions(table, file.path(), section, stated, ignored);
}

}  // namespace kinglet

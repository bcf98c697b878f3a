// The configuration of an ESPnet language model: config.yaml next to the checkpoint.
#ifndef KINGLET_CONVERTERS_FAMILIES_ESPNET_CONFIG_H_
#define KINGLET_CONVERTERS_FAMILIES_ESPNET_CONFIG_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "converters/checkpoints/config_file.h"
#include "converters/families/families.h"
#include "kinglet/status.h"

namespace kinglet {

// "lm_conf", which has only the options that the user set, and the tokens.
struct EspnetConfig {
  ConfigFile lm;
  std::vector<std::string> tokens;  // [words]

  // The option of lm_conf, or its default if it is absent or null. Errors: as ConfigFile's.
  Result<int64_t> Integer(const std::string& name, int64_t otherwise) const;
  // An option of lm_conf in lower case, or its default if it is absent or null.
  Result<std::string> Text(const std::string& name, const std::string& otherwise) const;
  Status RefuseOption(const std::string& name, const std::string& expected,
                      const std::string& found) const;
};

// The options of the file, without those in lm_conf, which are the network's.
OptionTable EspnetTaskOptions();

// Reads the file that --config names, or config.yaml in the checkpoint's folder or one up. Errors:
// KINGLET_NOT_FOUND, KINGLET_IO_ERROR; KINGLET_INVALID_CHECKPOINT unless "lm" is `type`
// ("seq_rnn", "transformer") and there is a list of tokens; KINGLET_UNSUPPORTED as CheckOptions,
// with `lm_options` for lm_conf.
Result<EspnetConfig> ReadEspnetConfig(const FamilyInput& input, std::string_view type,
                                      const OptionTable& lm_options);

// Sets the vocabulary, and start and end token: the last word. Errors: KINGLET_INVALID_CHECKPOINT
// unless there is a token for each word.
Status SetEspnetTokens(const EspnetConfig& config, LoadedModel& model);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_ESPNET_CONFIG_H_

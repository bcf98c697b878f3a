// The hyper-parameters and vocabularies of an OpenNMT-py checkpoint. They are pickled objects,
// which are read as data and never executed.
#ifndef KINGLET_CONVERTERS_FAMILIES_OPENNMT_SETTINGS_H_
#define KINGLET_CONVERTERS_FAMILIES_OPENNMT_SETTINGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "converters/sources/pickle.h"
#include "kinglet/status.h"

namespace kinglet {

struct OpenNmtSettings {
  uint32_t heads = 0;
  std::vector<std::string> source_words, target_words;  // index = id
  uint32_t start_token = 0;                             // <s> of the target
};

// `root` is all that torch.save wrote. Errors: KINGLET_INVALID_CHECKPOINT naming the option or the
// vocabulary.
Result<OpenNmtSettings> ReadOpenNmtSettings(const PickleNode& root);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_OPENNMT_SETTINGS_H_

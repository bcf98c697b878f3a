// The hyper-parameters and vocabularies of an OpenNMT-py checkpoint. Both are pickled objects,
// which are read as data and never executed.
#ifndef KINGLET_CONVERTERS_FAMILIES_OPENNMT_SETTINGS_H_
#define KINGLET_CONVERTERS_FAMILIES_OPENNMT_SETTINGS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "converters/checkpoints/pickle.h"
#include "converters/families/known_options.h"
#include "format/activation.h"
#include "format/blocks.h"
#include "kinglet/status.h"

namespace kinglet {

// Settings of a recurrent model that only its options state.
struct OpenNmtRecurrent {
  RecurrentCell cell = RecurrentCell::kLstm;
  bool both_directions = false;  // of the encoder (brnn)
  bool bridge = false;
  bool input_feed = true;
  std::optional<AttentionScore> attention = AttentionScore::kGeneral;  // nullopt: no attention
};

struct OpenNmtSettings {
  uint32_t heads = 0;                         // of a Transformer
  Activation activation = Activation::kRelu;  // of its inner layers
  // add_qkvbias, add_ffnbias of version 3: whether attention and inner layers have biases.
  bool attention_biases = true, inner_biases = true;
  std::optional<OpenNmtRecurrent> recurrent;
  // Both embeddings are one table; the target's and the generator's are one.
  bool shares_embeddings = false, shares_generator = false;
  std::vector<std::string> source_words, target_words;  // index = id
  uint32_t start_token = 0;                             // <s> of the target
};

// All options of OpenNMT-py 0.2 to 3.5, and how conversion treats them in a Transformer and in a
// recurrent model.
std::span<const OptionTable> OpenNmtOptions();

// `root` is the root of what torch.save wrote. `ignored` may be null. Errors:
// KINGLET_INVALID_CHECKPOINT naming the option or the vocabulary; KINGLET_UNSUPPORTED for an option
// that makes another network or that no table has.
Result<OpenNmtSettings> ReadOpenNmtSettings(const PickleNode& root,
                                            IgnoredOptions* ignored = nullptr);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_OPENNMT_SETTINGS_H_

// The configuration of a SpeechBrain language model: hyperparams.yaml next to the checkpoint, in
// HyperPyYAML as its author wrote it or as training saved it.
#ifndef KINGLET_CONVERTERS_FAMILIES_SPEECHBRAIN_CONFIG_H_
#define KINGLET_CONVERTERS_FAMILIES_SPEECHBRAIN_CONFIG_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "converters/checkpoints/config_file.h"
#include "converters/families/families.h"
#include "converters/families/speech_stream.h"
#include "format/activation.h"
#include "kinglet/status.h"

namespace kinglet {

// The arguments of the language model's object, references resolved, and "bos_index" and
// "eos_index" of the top level.
struct SpeechbrainConfig {
  ConfigFile arguments;
  SentenceTokens tokens;

  // The argument, or its default if it is absent or null. Errors: as ConfigFile's.
  Result<int64_t> Integer(const std::string& name, int64_t otherwise) const;
  Result<bool> Boolean(const std::string& name, bool otherwise) const;
  // The last part of the name of the class that is the argument: "GELU" of !name:torch.nn.GELU;
  // `otherwise` if it is absent. Refuses a class with arguments of its own, and classes outside
  // `packages`.
  Result<std::string> ClassName(const std::string& name, const std::string& otherwise,
                                std::span<const std::string_view> packages) const;
  // The argument "activation".
  Result<Activation> ActivationOf(const std::string& otherwise) const;
  Status RefuseArgument(const std::string& name, const std::string& expected,
                        const std::string& found) const;
};

// Reads the file that --config names, or hyperparams.yaml in the checkpoint's folder or up to two
// folders up. The object is the one tagged !new:`class_name`, under any key. Errors:
// KINGLET_NOT_FOUND, KINGLET_IO_ERROR; KINGLET_INVALID_CHECKPOINT for several such objects, or
// none; KINGLET_UNSUPPORTED as CheckOptions, with `known` for the object's arguments.
Result<SpeechbrainConfig> ReadSpeechbrainConfig(const FamilyInput& input,
                                                const std::string& class_name,
                                                const OptionTable& known);

// Sets start and end token, and as the vocabulary the pieces of tokenizer.ckpt.
Status SetSpeechbrainTokens(const FamilyInput& input, const SpeechbrainConfig& config,
                            LoadedModel& model);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_SPEECHBRAIN_CONFIG_H_

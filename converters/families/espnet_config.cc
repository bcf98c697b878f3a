#include "converters/families/espnet_config.h"

#include <algorithm>
#include <utility>

#include "converters/families/speech_stream.h"
#include "converters/sources/checkpoint_path.h"
#include "converters/sources/quoted.h"

namespace kinglet {
namespace {

constexpr const char* kLmOptions = "lm_conf";

char LowerCase(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

Result<int64_t> EspnetConfig::Integer(const std::string& name, int64_t otherwise) const {
  return lm.Has(name) ? lm.Integer(name) : Result<int64_t>(otherwise);
}

Result<std::string> EspnetConfig::Text(const std::string& name,
                                       const std::string& otherwise) const {
  if (!lm.Has(name)) return otherwise;
  KINGLET_ASSIGN_OR_RETURN(std::string text, lm.Text(name));
  std::transform(text.begin(), text.end(), text.begin(), LowerCase);
  return text;
}

Status EspnetConfig::RefuseOption(const std::string& name, const std::string& expected,
                                  const std::string& found) const {
  return Status::Refusal(KINGLET_INVALID_CHECKPOINT, lm.path(),
                         std::string(kLmOptions) + ", " + name, expected, found);
}

Result<EspnetConfig> ReadEspnetConfig(const FamilyInput& input, std::string_view type) {
  std::string path = input.config;
  if (path.empty()) {
    KINGLET_ASSIGN_OR_RETURN(path, FindConfig(input.checkpoint, "config.yaml"));
  }
  KINGLET_ASSIGN_OR_RETURN(const ConfigFile file, ConfigFile::Read(path));
  if (file.Has("lm")) {
    KINGLET_ASSIGN_OR_RETURN(const std::string lm, file.Text("lm"));
    if (lm != type) {
      return Status::Refusal(KINGLET_INVALID_CHECKPOINT, path, "lm", QuotedName(type),
                             QuotedName(lm));
    }
  }
  KINGLET_ASSIGN_OR_RETURN(std::vector<std::string> tokens, file.Texts("token_list"));
  // A model of defaults has "lm_conf: {}", or none.
  Result<ConfigFile> options = file.Has(kLmOptions) ? file.Section(kLmOptions) : file.Empty();
  if (!options.ok()) return options.status();
  return EspnetConfig{std::move(options).value(), std::move(tokens)};
}

Status SetEspnetTokens(const EspnetConfig& config, LoadedModel& model) {
  ModelDescription& description = model.draft.description;
  const uint64_t words = description.vocabulary_size;
  if (config.tokens.size() != words) {
    return Status::Refusal(KINGLET_INVALID_CHECKPOINT, config.lm.path(), "token_list",
                           std::to_string(words) + " tokens as the tables have",
                           std::to_string(config.tokens.size()));
  }
  model.draft.vocabulary = config.tokens;
  return SetSentenceTokens({words - 1, words - 1}, config.lm.path() + ", token_list", description);
}

}  // namespace kinglet

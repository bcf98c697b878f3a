#include "converters/families/speechbrain_config.h"

#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "converters/checkpoints/checkpoint_path.h"
#include "converters/checkpoints/quoted.h"
#include "converters/families/config_options.h"
#include "converters/families/token_list.h"

namespace kinglet {
namespace {

using std::string_view_literals::operator""sv;

constexpr std::string_view kNameTag = "!name:", kNewTag = "!new:";

// An object and its key.
struct TaggedSection {
  std::string key;
  ConfigFile section;
};

// The sections with the tag: those of the top level, or else those of its sections.
Result<std::vector<TaggedSection>> SectionsTagged(const ConfigFile& file, const std::string& tag,
                                                  bool deeper) {
  std::vector<TaggedSection> found;
  for (const std::string& key : file.Keys()) {
    if (file.Tag(key) != tag) continue;
    KINGLET_ASSIGN_OR_RETURN(ConfigFile section, file.Section(key));
    found.push_back({key, std::move(section)});
  }
  if (!found.empty() || !deeper) return found;
  for (const std::string& key : file.Keys()) {
    const Result<ConfigFile> section = file.Section(key);
    if (!section.ok()) continue;  // another kind of value
    KINGLET_ASSIGN_OR_RETURN(std::vector<TaggedSection> more, SectionsTagged(*section, tag, false));
    for (TaggedSection& each : more) {
      found.push_back({key + ", " + each.key, std::move(each.section)});
    }
  }
  return found;
}

Result<uint64_t> TokenOf(const ConfigFile& file, const std::string& key) {
  KINGLET_ASSIGN_OR_RETURN(const int64_t token, file.Integer(key));
  return static_cast<uint64_t>(token);  // a negative one becomes one that no vocabulary has
}

}  // namespace

Status SpeechbrainConfig::RefuseArgument(const std::string& name, const std::string& expected,
                                         const std::string& found) const {
  return Status::Refusal(KINGLET_INVALID_CHECKPOINT, arguments.path(), QuotedName(name), expected,
                         found);
}

Result<int64_t> SpeechbrainConfig::Integer(const std::string& name, int64_t otherwise) const {
  return arguments.Has(name) ? arguments.Integer(name) : Result<int64_t>(otherwise);
}

Result<bool> SpeechbrainConfig::Boolean(const std::string& name, bool otherwise) const {
  return arguments.Has(name) ? arguments.Boolean(name) : Result<bool>(otherwise);
}

Result<std::string> SpeechbrainConfig::ClassName(const std::string& name,
                                                 const std::string& otherwise,
                                                 std::span<const std::string_view> packages) const {
  const std::string tag = arguments.Tag(name);
  if (tag.empty()) {
    if (!arguments.Has(name)) return otherwise;
    return RefuseArgument(name, "a class: !name:package.Class", "a value that is no class");
  }
  const Result<ConfigFile> section = arguments.Section(name);
  if (section.ok() && !section->Keys().empty()) {
    const std::string key = section->Keys().front();
    const Result<double> slope = section->Number("negative_slope");
    const bool usual = section->Keys().size() == 1 && slope.ok() && *slope == kLeakySlope;
    if (!usual) return RefuseArgument(name, "a class without arguments", QuotedName(key));
  }
  std::string known;
  const size_t colon = tag.find(':') + 1, dot = tag.rfind('.');
  const bool names = tag.starts_with(kNameTag) || tag.starts_with(kNewTag);
  for (const std::string_view package : packages) {
    if (names && dot != std::string::npos && tag.substr(colon, dot - colon) == package) {
      return tag.substr(dot + 1);
    }
    known += (known.empty() ? "" : " or ") + std::string(package);
  }
  return RefuseArgument(name, "a class of " + known + ": !name:package.Class", QuotedName(tag));
}

Result<Activation> SpeechbrainConfig::ActivationOf(const std::string& otherwise) const {
  struct Known {
    std::string_view name;
    Activation activation;
  };
  static constexpr std::array<Known, 7> kKnown = {{{"ReLU", Activation::kRelu},
                                                   {"LeakyReLU", Activation::kLeakyRelu},
                                                   {"GELU", Activation::kGelu},
                                                   {"SiLU", Activation::kSwish},
                                                   {"Swish", Activation::kSwish},
                                                   {"Tanh", Activation::kTanh},
                                                   {"Sigmoid", Activation::kSigmoid}}};
  static constexpr std::array kPackages = {"torch.nn"sv, "torch.nn.modules.activation"sv,
                                           "speechbrain.nnet.activations"sv};
  KINGLET_ASSIGN_OR_RETURN(const std::string name, ClassName("activation", otherwise, kPackages));
  for (const Known& known : kKnown) {
    if (known.name == name) return known.activation;
  }
  return RefuseArgument("activation", "ReLU, LeakyReLU, GELU, SiLU, Swish, Tanh or Sigmoid",
                        QuotedName(name));
}

Result<SpeechbrainConfig> ReadSpeechbrainConfig(const FamilyInput& input,
                                                const std::string& class_name,
                                                const OptionTable& known) {
  std::string path = input.config;
  if (path.empty()) {
    KINGLET_ASSIGN_OR_RETURN(path, FindConfig(input.checkpoint, "hyperparams.yaml", 2));
  }
  KINGLET_ASSIGN_OR_RETURN(const ConfigFile file, ConfigFile::Read(path));
  const std::string tag = std::string(kNewTag) + class_name;
  KINGLET_ASSIGN_OR_RETURN(const std::vector<TaggedSection> sections,
                           SectionsTagged(file, tag, true));
  if (sections.size() != 1) {
    std::string keys;
    for (const TaggedSection& section : sections) {
      keys += (keys.empty() ? "" : " and ") + QuotedName(section.key);
    }
    return Status::Refusal(KINGLET_INVALID_CHECKPOINT, path, "objects", "one " + tag,
                           keys.empty() ? "none" : keys);
  }
  KINGLET_ASSIGN_OR_RETURN(ConfigFile arguments, sections.front().section.WithReferences(file));
  KINGLET_RETURN_IF_ERROR(CheckConfig(known, arguments, input.ignored));
  KINGLET_ASSIGN_OR_RETURN(const ConfigFile top, file.WithReferences(file));
  KINGLET_ASSIGN_OR_RETURN(const uint64_t start, TokenOf(top, "bos_index"));
  KINGLET_ASSIGN_OR_RETURN(const uint64_t end, TokenOf(top, "eos_index"));
  return SpeechbrainConfig{std::move(arguments), {start, end}};
}

Status SetSpeechbrainTokens(const FamilyInput& input, const SpeechbrainConfig& config,
                            LoadedModel& model) {
  ModelDescription& description = model.draft.description;
  const std::string& path = config.arguments.path();
  KINGLET_RETURN_IF_ERROR(
      SetSentenceTokens(config.tokens, path + ", bos_index and eos_index", description));
  KINGLET_ASSIGN_OR_RETURN(model.draft.vocabulary,
                           FindSentencePieces(input.checkpoint, path, description.vocabulary_size));
  return {};
}

}  // namespace kinglet

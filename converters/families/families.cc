#include "converters/families/families.h"

#include <algorithm>
#include <array>

#include "converters/checkpoints/derived_weights.h"
#include "converters/checkpoints/quoted.h"
#include "converters/checkpoints/refuse_checkpoint.h"
#include "converters/families/name_match.h"

namespace kinglet {
namespace {

// An outline of a state dict, for messages: how many tensors, and the names of the first ones.
std::string Outline(std::span<const CheckpointTensor> weights) {
  constexpr size_t kShown = 5;
  std::string text = "a state dict of " + std::to_string(weights.size()) + " tensors";
  for (size_t i = 0; i < std::min(kShown, weights.size()); ++i) {
    text += (i == 0 ? ": " : ", ") + QuotedName(weights[i].name);
  }
  if (weights.size() > kShown) text += ", ...";
  return text;
}

// The end of a refusal: the family that comes nearest, a weight that no family finds because it is
// computed, and what to do.
std::string NextStep(const FamilyInput& input) {
  const std::string nearest = NearestText(input);
  const std::vector<DerivedWeight> derived = DerivedWeights(input.weights);
  return (nearest.empty() ? "" : "; " + nearest) +
         (derived.empty() ? "" : "; " + derived.front().text) +
         " (`kinglet inspect` shows all names; a --recipe reads any)";
}

// The names of the families for which `wanted` holds.
template <class Predicate>
std::string NamesOf(const Predicate& wanted) {
  std::string names;
  for (const Family* family : Families()) {
    if (!wanted(*family)) continue;
    if (!names.empty()) names += ", ";
    names += family->name;
  }
  return names;
}

}  // namespace

std::span<const Family* const> KnownFamilies() {
  // The last is not read.
  static constexpr std::array kFamilies = {&kMicronet,
                                           &kAwdLstm,
                                           &kFastai,
                                           &kFlair,
                                           &kDefineAwdLstm,
                                           &kPytorchExamples,
                                           &kPytorchTransformer,
                                           &kZaremba,
                                           &kTransformerXl,
                                           &kTransfoXl,
                                           &kFairseq,
                                           &kOpenNmt,
                                           &kIcefallRnn,
                                           &kIcefallTransformer,
                                           &kEspnetRnn,
                                           &kEspnetTransformer,
                                           &kSpeechbrainRnn,
                                           &kSpeechbrainTransformer,
                                           &kBert,
                                           &kGpt2,
                                           &kFairseqTranslation};
  return kFamilies;
}

std::span<const Family* const> Families() {
  const std::span<const Family* const> known = KnownFamilies();
  return known.first(known.size() - 1);
}

const Family* FamilyNamed(std::string_view name) {
  const std::span<const Family* const> families = Families();
  const auto found = std::find_if(families.begin(), families.end(),
                                  [name](const Family* family) { return family->name == name; });
  return found == families.end() ? nullptr : *found;
}

std::string FamilyNames() {
  return NamesOf([](const Family&) { return true; });
}

FamilyInput InputOf(const CheckpointFile& file, const CheckpointTensors& weights) {
  return {.checkpoint = file.path,
          .step = file.step,
          .weights = weights,
          .modules = file.modules,
          .root = file.checkpoint ? &file.checkpoint->root() : nullptr,
          .unread_names = file.unread_names};
}

Result<const Family*> ChooseFamily(std::string_view name, const FamilyInput& input) {
  const CheckpointTensors& weights = input.weights;
  const auto recognises = [&](const Family& family) {
    return Recognises(family, weights, input.root);
  };
  const std::span<const Family* const> families = Families();
  const auto chosen = std::find_if(families.begin(), families.end(), [&](const Family* family) {
    return name.empty() ? recognises(*family) : family->name == name;
  });
  if (chosen == families.end() && !name.empty()) {
    return Status::Refusal(KINGLET_UNSUPPORTED, "family", QuotedName(name),
                           "one of " + FamilyNames() + " in this build",
                           "no such family (omit --family: names tell it)");
  }
  if (chosen == families.end()) {
    return Status::Refusal(KINGLET_UNSUPPORTED, "checkpoint", input.checkpoint,
                           "a family that this build recognises (" + FamiliesByFit(input) + ")",
                           Outline(weights) + NextStep(input));
  }
  if (!recognises(**chosen)) {
    if (const std::string fitting = NamesOf(recognises); !fitting.empty()) {
      return Status::Refusal(
          KINGLET_INVALID_CHECKPOINT, "checkpoint", input.checkpoint,
          "tensors of the family " + QuotedName(name),
          "those of " + fitting + ": " + Outline(weights) + " (omit --family, or name that one)");
    }
  }
  return *chosen;
}

Result<LoadedModel> LoadFamily(const Family& family, const FamilyInput& input) {
  KINGLET_RETURN_IF_ERROR(
      CheckPickledModules(family.modules == nullptr ? nullptr : &family.modules(), input.modules,
                          family.name, input.checkpoint, input.ignored));
  KINGLET_ASSIGN_OR_RETURN(LoadedModel model, family.load(input));
  // A tensor that is there in a form that is not read is not one that a tie replaces.
  for (const std::string& name : model.shared) {
    for (const std::string& unread : input.unread_names) {
      if (!unread.ends_with(name)) continue;
      return RefuseCheckpoint("tensor " + name, "a form that is read",
                              "another; its values may differ from those of the tensor that it is "
                              "tied to");
    }
  }
  return model;
}

Status CheckMemoryLength(const Family& family, std::optional<uint32_t> memory_length) {
  if (!memory_length || family.takes_memory_length) return {};
  return Status::Refusal(
      KINGLET_UNSUPPORTED, "convert", "mem-len",
      "no --mem-len for " + std::string(family.name) + " (families with it: " +
          NamesOf([](const Family& other) { return other.takes_memory_length; }) + ")",
      std::to_string(*memory_length) + " (omit it)");
}

}  // namespace kinglet

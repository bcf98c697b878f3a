#include "converters/families/families.h"

#include <algorithm>
#include <array>

#include "converters/checkpoints/derived_weights.h"
#include "converters/checkpoints/quoted.h"
#include "converters/families/awd_lstm.h"
#include "converters/families/bert.h"
#include "converters/families/define_awd_lstm.h"
#include "converters/families/espnet_rnn.h"
#include "converters/families/espnet_transformer.h"
#include "converters/families/fairseq.h"
#include "converters/families/icefall_rnn.h"
#include "converters/families/icefall_transformer.h"
#include "converters/families/name_match.h"
#include "converters/families/neurips_micronet.h"
#include "converters/families/opennmt.h"
#include "converters/families/opennmt_settings.h"
#include "converters/families/pytorch_examples.h"
#include "converters/families/speechbrain_rnn.h"
#include "converters/families/speechbrain_transformer.h"
#include "converters/families/transfo_xl_hf.h"
#include "converters/families/transformer_xl.h"
#include "converters/families/zaremba_tf.h"

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
std::string NextStep(std::span<const CheckpointTensor> weights) {
  const std::string nearest = NearestText(weights);
  const std::vector<DerivedWeight> derived = DerivedWeights(weights);
  return (nearest.empty() ? "" : "; " + nearest) +
         (derived.empty() ? "" : "; " + derived.front().text) +
         " (`kinglet inspect` shows all names; a --recipe reads any)";
}

// The names of the families for which `wanted` holds.
template <class Predicate>
std::string NamesOf(const Predicate& wanted) {
  std::string names;
  for (const Family& family : Families()) {
    if (!wanted(family)) continue;
    if (!names.empty()) names += ", ";
    names += family.name;
  }
  return names;
}

}  // namespace

std::span<const Family> Families() {
  static constexpr std::array<Family, 16> kFamilies = {{
      {kMicronetFamily, LooksLikeMicronet, LoadMicronet, false, MicronetOptions},
      {kAwdLstmFamily, LooksLikeAwdLstm, LoadAwdLstm, false, AwdLstmOptions, AwdLstmModules},
      {kDefineAwdLstmFamily, LooksLikeDefineAwdLstm, LoadDefineAwdLstm},
      {kPytorchExamplesFamily, LooksLikePytorchExamples, LoadPytorchExamples, false,
       PytorchExamplesOptions, PytorchExamplesModules},
      {kZarembaFamily, LooksLikeZaremba, LoadZaremba, false, ZarembaOptions},
      {kTransformerXlFamily, LooksLikeTransformerXl, LoadTransformerXl, true, TransformerXlOptions,
       TransformerXlModules},
      {kTransfoXlFamily, LooksLikeTransfoXl, LoadTransfoXl, true, TransfoXlOptions},
      {kFairseqFamily, LooksLikeFairseq, LoadFairseq, false, FairseqOptions},
      {kOpenNmtFamily, LooksLikeOpenNmt, LoadOpenNmt, true, OpenNmtOptions},
      {kIcefallRnnFamily, LooksLikeIcefallRnn, LoadIcefallRnn, false, IcefallRnnOptions},
      {kIcefallTransformerFamily, LooksLikeIcefallTransformer, LoadIcefallTransformer, true,
       IcefallTransformerOptions},
      {kEspnetRnnFamily, LooksLikeEspnetRnn, LoadEspnetRnn, false, EspnetRnnOptions},
      {kEspnetTransformerFamily, LooksLikeEspnetTransformer, LoadEspnetTransformer, true,
       EspnetTransformerOptions},
      {kSpeechbrainRnnFamily, LooksLikeSpeechbrainRnn, LoadSpeechbrainRnn, false,
       SpeechbrainRnnOptions},
      {kSpeechbrainTransformerFamily, LooksLikeSpeechbrainTransformer, LoadSpeechbrainTransformer,
       true, SpeechbrainTransformerOptions},
      {kBertFamily, LooksLikeBert, LoadBert, false, BertOptions},
  }};
  return kFamilies;
}

std::string FamilyNames() {
  return NamesOf([](const Family&) { return true; });
}

Result<const Family*> ChooseFamily(std::string_view name, const std::string& checkpoint,
                                   std::span<const CheckpointTensor> weights) {
  const auto recognises = [weights](const Family& family) { return family.recognises(weights); };
  const std::span<const Family> families = Families();
  const auto chosen = std::find_if(families.begin(), families.end(), [&](const Family& family) {
    return name.empty() ? recognises(family) : family.name == name;
  });
  if (chosen == families.end() && !name.empty()) {
    return Status::Refusal(KINGLET_UNSUPPORTED, "family", QuotedName(name),
                           "one of " + FamilyNames() + " in this build", "no such family");
  }
  if (chosen == families.end()) {
    return Status::Refusal(KINGLET_UNSUPPORTED, "checkpoint", checkpoint,
                           "a family that this build recognises (" + FamiliesByFit(weights) + ")",
                           Outline(weights) + NextStep(weights));
  }
  if (!recognises(*chosen)) {
    if (const std::string fitting = NamesOf(recognises); !fitting.empty()) {
      return Status::Refusal(
          KINGLET_INVALID_CHECKPOINT, "checkpoint", checkpoint,
          "tensors of the family " + QuotedName(name),
          "those of " + fitting + ": " + Outline(weights) + " (omit --family, or name that one)");
    }
  }
  return &*chosen;
}

Status CheckMemoryLength(const Family& family, std::optional<uint32_t> memory_length) {
  if (!memory_length || family.takes_memory_length) return {};
  return Status::Refusal(
      KINGLET_UNSUPPORTED, "convert", "mem-len",
      "no --mem-len for " + std::string(family.name) + " (families with it: " +
          NamesOf([](const Family& other) { return other.takes_memory_length; }) + ")",
      std::to_string(*memory_length));
}

}  // namespace kinglet

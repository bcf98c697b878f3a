#include "converters/families/families.h"

#include <algorithm>
#include <array>

#include "converters/families/awd_lstm.h"
#include "converters/families/define_awd_lstm.h"
#include "converters/families/kinglet_torch.h"
#include "converters/families/neurips_micronet.h"
#include "converters/families/opennmt.h"
#include "converters/families/pytorch_examples.h"
#include "converters/families/zaremba_tf.h"
#include "converters/quoted.h"

namespace kinglet {
namespace {

// What a state dict that no family recognises is made of.
std::string Outline(std::span<const SourceTensor> weights) {
  constexpr size_t kShown = 5;
  std::string text = "a state dict of " + std::to_string(weights.size()) + " tensors";
  for (size_t i = 0; i < std::min(kShown, weights.size()); ++i) {
    text += (i == 0 ? ": " : ", ") + QuotedName(weights[i].name);
  }
  if (weights.size() > kShown) text += ", ...";
  return text;
}

}  // namespace

std::span<const Family> Families() {
  static constexpr std::array<Family, 7> kFamilies = {{
      {kMicronetFamily, LooksLikeMicronet, LoadMicronet},
      {kAwdLstmFamily, LooksLikeAwdLstm, LoadAwdLstm},
      {kDefineAwdLstmFamily, LooksLikeDefineAwdLstm, LoadDefineAwdLstm},
      {kPytorchExamplesFamily, LooksLikePytorchExamples, LoadPytorchExamples},
      {kKingletTorchFamily, LooksLikeKingletTorch, LoadKingletTorch},
      {kZarembaFamily, LooksLikeZaremba, LoadZaremba},
      {kOpenNmtFamily, LooksLikeOpenNmt, LoadOpenNmt},
  }};
  return kFamilies;
}

std::string FamilyNames() {
  std::string names;
  for (const Family& family : Families()) {
    if (!names.empty()) names += ", ";
    names += family.name;
  }
  return names;
}

Result<const Family*> ChooseFamily(std::string_view name, const std::string& checkpoint,
                                   std::span<const SourceTensor> weights) {
  for (const Family& family : Families()) {
    if (name.empty() ? family.recognises(weights) : family.name == name) return &family;
  }
  if (!name.empty()) {
    return Status::Refusal(KINGLET_UNSUPPORTED, "family", QuotedName(name),
                           "one of " + FamilyNames() + " in this build", "no such family");
  }
  return Status::Refusal(KINGLET_UNSUPPORTED, "checkpoint", checkpoint,
                         "a family that this build recognises (" + FamilyNames() + ")",
                         Outline(weights));
}

}  // namespace kinglet

// How well a checkpoint's names fit each framework, the best first.
#ifndef KINGLET_CONVERTERS_FAMILIES_NAME_MATCH_H_
#define KINGLET_CONVERTERS_FAMILIES_NAME_MATCH_H_

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "converters/checkpoints/checkpoint_tensors.h"
#include "converters/families/families.h"

namespace kinglet {

struct NameMatch {
  const Family* family = nullptr;  // perhaps one that this build does not read
  // Names that the family expects and the checkpoint lacks, and names of the checkpoint that the
  // family does not read; at most kMaxListedNames of each.
  std::vector<std::string> missing, unused;
  // Known names among all that are known or missing: 1 where all is as expected.
  double fit = 0;
  // Why a family that recognises the checkpoint could not compare its names: a configuration that
  // is not there, for example. Then `fit` is 0.
  std::string refusal = {};

  bool is_read() const { return family->load != nullptr; }
  // Whether no name speaks against the family.
  bool fits() const { return fit == 1 || !refusal.empty(); }
};
inline constexpr size_t kMaxListedNames = 1000;

// Whether the checkpoint is one of the family's (Family::marks, Family::entry). `root`:
// FamilyInput::root.
bool Recognises(const Family& family, std::span<const CheckpointTensor> weights,
                const PickleNode* root = nullptr);

// The families that the names fit, or, if there are none, nearly fit, by what their loaders claim.
// The best first; of equal ones a family that this build reads first.
std::vector<NameMatch> NearestFamilies(const FamilyInput& input);

// The part of the names up to a dot without which they fit a family: trainers put prefixes like
// "model." or "model.lm." before all names of a network. Returns nullopt if the names fit as they
// are.
struct PrefixMatch {
  std::string prefix;
  const Family* family;
};
std::optional<PrefixMatch> FittingPrefix(const FamilyInput& input);

// "it has an encoder and a decoder: no family reads fairseq's translation models": for a family
// that this build does not read.
std::string UnreadText(const Family& family);

// The names of all families, those whose frameworks fit best first.
std::string FamiliesByFit(const FamilyInput& input);

// A family's refusal with the next step: a recipe. If all names fit a framework that no family
// reads, that framework is named instead (some frameworks name tensors as a family's does). A
// refusal of a file that cannot be found or read, or which ends with a step in parentheses, has its
// own and stays as it is.
Status WithNextStep(const Status& refusal, std::span<const CheckpointTensor> weights);

// The best match for a message: "nearest is transformer-xl, which misses 'a' and does not read
// 'b'". Empty if no framework is near.
std::string NearestText(const FamilyInput& input);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_NAME_MATCH_H_

// How well a checkpoint's names fit each framework, the best first.
#ifndef KINGLET_CONVERTERS_FAMILIES_NAME_MATCH_H_
#define KINGLET_CONVERTERS_FAMILIES_NAME_MATCH_H_

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "converters/checkpoints/checkpoint_tensors.h"
#include "converters/families/families.h"
#include "converters/families/frameworks.h"

namespace kinglet {

struct NameMatch {
  const Framework* code = nullptr;
  const Family* family = nullptr;  // null: no family of this build reads the code's checkpoints
  // Names that the code expects and the checkpoint lacks, and the checkpoint's names that the code
  // does not know; at most kMaxListedNames of each.
  std::vector<std::string> missing, unused;
  // Known names among all that are known, missing or unused: 1 where all is as expected.
  double fit = 0;
};
inline constexpr size_t kMaxListedNames = 1000;

NameMatch MatchNames(const Framework& code, std::span<const CheckpointTensor> weights);

// The codes that the names fit, or, where there is none, nearly fit. The best first; of equal ones
// a code with a family.
std::vector<NameMatch> NearestCodes(std::span<const CheckpointTensor> weights);

// A part before the names, up to a dot, without which a family's names fit, as training frameworks
// put one before all names of a network ("model."). None where the names fit as they are.
struct PrefixMatch {
  std::string prefix;
  NameMatch match;
};
std::optional<PrefixMatch> FittingPrefix(std::span<const CheckpointTensor> weights);

// "it has an encoder and a decoder: no family reads fairseq's translation models": of a code
// without a family.
std::string NoFamilyText(const Framework& code);

// The names of all families, those whose frameworks fit best first.
std::string FamiliesByFit(std::span<const CheckpointTensor> weights);

// A family's refusal and the next step: a recipe, or none where all names fit a code without a
// family, which is named (some codes name tensors as a family's code does). A refusal for a file
// that cannot be found or read says itself what to do, and stays as it is.
Status WithNextStep(const Status& refusal, std::span<const CheckpointTensor> weights);

// The best match for a message: "nearest is transformer-xl, which misses 'a' and has no place for
// 'b'". Empty where none is near.
std::string NearestText(std::span<const CheckpointTensor> weights);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_NAME_MATCH_H_

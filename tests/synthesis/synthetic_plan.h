// Plans of published shapes without weights: counting needs only the shapes of tensors and how many
// of their entries are not zero, which tests change here one by one.
#ifndef KINGLET_TESTS_SYNTHESIS_SYNTHETIC_PLAN_H_
#define KINGLET_TESTS_SYNTHESIS_SYNTHETIC_PLAN_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "format/encoding.h"
#include "kernels/plan.h"
#include "tests/synthesis/coded_synthesis.h"
#include "tests/synthesis/synthesis.h"

namespace kinglet {

using SyntheticConfig = SynthesisSpec;

class SyntheticPlan {
 public:
  // The plan of the model that Synthesise would make, of 3 bits or more; nothing is synthesised.
  // REQUIRES: a spec that OutlineMicronet takes.
  explicit SyntheticPlan(const SyntheticConfig& config);
  // REQUIRES: a spec that OutlineCoded takes.
  explicit SyntheticPlan(const CodedSynthesisSpec& spec);
  // Of a model without values: shapes, encodings and blocks. Every entry counts as not zero.
  explicit SyntheticPlan(const ModelDraft& outline);
  SyntheticPlan(const SyntheticPlan&) = delete;
  SyntheticPlan& operator=(const SyntheticPlan&) = delete;

  const Plan& plan() const { return plan_; }
  // By tensor; as synthesised until changed.
  std::vector<uint64_t> nonzeros;
  // By its name in the framework's state dict.
  TensorId Find(std::string_view name) const;
  // Parameters of the tensors whose names begin so, as the command counts them.
  uint64_t ParametersOf(std::string_view prefix) const;

 private:
  void Fill(const ModelDraft& outline);

  std::vector<TensorView> tensors_;
  Plan plan_;
};

}  // namespace kinglet

#endif  // KINGLET_TESTS_SYNTHESIS_SYNTHETIC_PLAN_H_

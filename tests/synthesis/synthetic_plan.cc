#include "tests/synthesis/synthetic_plan.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "runtime/lower/lower.h"

namespace kinglet {

namespace {

TensorView ViewOf(const EncodedTensor& tensor) {
  TensorView view{tensor.name, tensor.shape, DenseView{FloatType::kF32, {}}, {}};
  view.derived = tensor.derived;
  if (const auto* quantised = std::get_if<Quantised>(&tensor.values)) {
    view.values = PackedView{quantised->bits, quantised->rule, {}, {}};
  } else if (const auto* coded = std::get_if<Coded>(&tensor.values)) {
    view.values = CodedView{coded->scheme, {}, std::nullopt};
  }
  return view;
}

}  // namespace

SyntheticPlan::SyntheticPlan(const SyntheticConfig& config) {
  SynthesisOutline outline = *OutlineMicronet(config);
  nonzeros = std::move(outline.nonzeros);
  Fill(outline.draft);
}

SyntheticPlan::SyntheticPlan(const CodedSynthesisSpec& spec) : SyntheticPlan(*OutlineCoded(spec)) {}

SyntheticPlan::SyntheticPlan(const ModelDraft& outline) {
  for (const EncodedTensor& tensor : outline.tensors) {
    nonzeros.push_back(tensor.coded() ? 0 : Count(tensor.shape));
  }
  Fill(outline);
}

void SyntheticPlan::Fill(const ModelDraft& outline) {
  for (const EncodedTensor& tensor : outline.tensors) tensors_.push_back(ViewOf(tensor));
  plan_ = *Lower(outline.description, tensors_);
}

uint64_t SyntheticPlan::ParametersOf(std::string_view prefix) const {
  uint64_t sum = 0;
  for (const TensorView& weight : plan_.weights) {
    if (weight.name.starts_with(prefix)) sum += Parameters(weight);
  }
  return sum;
}

TensorId SyntheticPlan::Find(std::string_view name) const {
  const auto found = std::find_if(
      tensors_.begin(), tensors_.end(),
      [stored = StoredName(name)](const TensorView& tensor) { return tensor.name == stored; });
  return static_cast<TensorId>(found - tensors_.begin());
}

}  // namespace kinglet

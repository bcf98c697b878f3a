#include "tests/runtime/synthetic_plan.h"

#include <algorithm>
#include <optional>
#include <variant>

#include "runtime/lower/lower.h"

namespace kinglet {

SyntheticPlan::SyntheticPlan(const SyntheticConfig& config) {
  const ModelDraft draft = *Synthesise(config);
  for (const EncodedTensor& tensor : draft.tensors) {
    TensorView view{tensor.name, tensor.shape, DenseView{FloatType::kF32, {}}, {}};
    if (const auto* quantised = std::get_if<Quantised>(&tensor.values)) {
      view.values = PackedView{quantised->bits, quantised->rule, {}, {}};
    }
    tensors_.push_back(view);
    nonzeros.push_back(CountNonzeros(tensor));
  }
  plan_ = *Lower(draft.description, tensors_);
}

SyntheticPlan::SyntheticPlan(const CodedSynthesisSpec& spec) {
  const ModelDraft draft = *OutlineCoded(spec);
  for (const EncodedTensor& tensor : draft.tensors) {
    TensorView view{tensor.name, tensor.shape, DenseView{FloatType::kF32, {}}, {}};
    if (const auto* coded = std::get_if<Coded>(&tensor.values)) {
      view.values = CodedView{coded->scheme, {}, std::nullopt};
    }
    tensors_.push_back(view);
    nonzeros.push_back(tensor.coded() ? 0 : Count(tensor.shape));
  }
  plan_ = *Lower(draft.description, tensors_);
}

TensorId SyntheticPlan::Find(std::string_view name) const {
  const auto found = std::find_if(
      tensors_.begin(), tensors_.end(),
      [stored = StoredName(name)](const TensorView& tensor) { return tensor.name == stored; });
  return static_cast<TensorId>(found - tensors_.begin());
}

}  // namespace kinglet

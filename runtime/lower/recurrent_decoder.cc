#include <string>
#include <utility>

#include "runtime/lower/blocks.h"

namespace kinglet {
namespace {

bool IsQrnn(const RecurrentLayer& layer) { return layer.cell == RecurrentCell::kQrnn; }

// Whether the layer multiplies what its input was at the previous token.
bool ReadsPreviousInput(const RecurrentLayer& layer) {
  return IsQrnn(layer) && layer.recurrent_weight.has_value();
}

std::string LayerName(size_t index) { return "layers." + std::to_string(index); }

}  // namespace

RecurrentLowering::RecurrentLowering(const RecurrentDecoder& block, const std::string& output,
                                     PlanBuilder& builder)
    : block_(block), builder_(builder) {
  const size_t layers = block.layers.size();
  input_ = Make("embedded", block.inputs, false, ReadsPreviousInput(block.layers[0]), block.input);
  for (size_t i = 0; i < layers; ++i) {
    const RecurrentLayer& layer = block.layers[i];
    const bool last = i + 1 == layers;
    const bool kept = last || !IsQrnn(layer) || ReadsPreviousInput(block.layers[i + 1]);
    // A GRU mixes its previous output, as reals, into the next one.
    outputs_.push_back(Make(last ? output : LayerName(i) + ".hidden", layer.units,
                            layer.cell == RecurrentCell::kGru, kept, layer.output));
  }
}

RecurrentLowering::Vector RecurrentLowering::Make(
    const std::string& name, uint64_t count, bool reals_kept, bool codes_kept,
    const std::optional<ActivationQuantiser>& quantiser) {
  const BufferId reals = builder_.Reals(name, count, reals_kept || (codes_kept && !quantiser));
  if (!quantiser) return {reals, reals};
  return {reals, builder_.Codes(name + ".codes", count, *quantiser, codes_kept)};
}

void RecurrentLowering::Quantised(const std::string& step_name, const Vector& vector) {
  if (vector.codes != vector.reals) {
    builder_.AddStep(step_name, Quantise{vector.reals, vector.codes});
  }
}

void RecurrentLowering::LowerPreviousProducts() {
  for (size_t i = 0; i < block_.layers.size(); ++i) {
    const RecurrentLayer& layer = block_.layers[i];
    previous_.emplace_back();
    if (!layer.recurrent_weight) continue;
    const BufferId left = IsQrnn(layer) ? InputOf(i).codes : outputs_[i].codes;
    const std::string name = LayerName(i) + ".recurrent";
    previous_.back() = builder_.Reals(name, uint64_t{GatesOf(layer.cell)} * layer.units);
    builder_.AddProduct(
        name, MatVec{*layer.recurrent_weight, layer.recurrent_bias, left, *previous_.back()});
  }
}

void RecurrentLowering::LowerLayers() {
  Quantised("embedded.quantise", input_);
  for (size_t i = 0; i < block_.layers.size(); ++i) {
    const RecurrentLayer& layer = block_.layers[i];
    const std::string name = LayerName(i);
    const BufferId input =
        builder_.Reals(name + ".input", uint64_t{GatesOf(layer.cell)} * layer.units);
    builder_.AddProduct(name + ".input",
                        MatVec{layer.input_weight, layer.input_bias, InputOf(i).codes, input});
    LowerGates(i, input);
    Quantised(name + ".quantise", outputs_[i]);
  }
}

void RecurrentLowering::LowerGates(size_t index, BufferId input) {
  const RecurrentLayer& layer = block_.layers[index];
  const std::string name = LayerName(index);
  const BufferId hidden = outputs_[index].reals;
  const std::optional<BufferId> previous = previous_[index];
  const auto cell = [&] { return builder_.Reals(name + ".cell", layer.units, true); };
  const auto add = [&](Op op) { builder_.AddStep(name + ".gates", std::move(op)); };
  switch (layer.cell) {
    case RecurrentCell::kLstm:
      return add(LstmGates{input, *previous, cell(), hidden});
    case RecurrentCell::kGru:
      return add(GruGates{input, *previous, hidden});
    case RecurrentCell::kTanh:
    case RecurrentCell::kRelu:
      return add(RnnGates{input, *previous, hidden, layer.cell == RecurrentCell::kRelu});
    case RecurrentCell::kQrnn:
      return add(QrnnGates{input, previous, cell(), hidden});
  }
}

}  // namespace kinglet

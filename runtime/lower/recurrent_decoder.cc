#include <string>
#include <utility>

#include "runtime/lower/blocks.h"

namespace kinglet {
namespace {

bool IsQrnn(const RecurrentLayer& layer) { return layer.cell == RecurrentCell::kQrnn; }

// Whether the layer has a product with its input at the previous token.
bool ReadsPreviousInput(const RecurrentLayer& layer) {
  return IsQrnn(layer) && layer.recurrent_weight.has_value();
}

std::string LayerName(size_t index) { return "layers." + std::to_string(index); }

}  // namespace

void LowerQuantised(const std::string& name, const QuantisedVector& vector, PlanBuilder& builder) {
  builder.Note(vector.quantiser, vector.floats);
  if (vector.codes != vector.floats) builder.AddNode(name, Quantise{vector.floats, vector.codes});
}

RecurrentLowering::RecurrentLowering(const RecurrentDecoder& block, const std::string& output,
                                     const SourceMemory* memory, PlanBuilder& builder)
    : block_(block), memory_(memory), builder_(builder) {
  const size_t layers = block.layers.size();
  if (block.input_feed) {
    const uint64_t inputs = uint64_t{block.inputs} + block.layers.back().Outputs();
    embedded_ = builder.Floats("embedding", block.inputs);
    input_ = Make("embedded", inputs, false, false, At(block.input));
  } else {
    input_ =
        Make("embedded", block.inputs, false, ReadsPreviousInput(block.layers[0]), At(block.input));
    embedded_ = input_.floats;
  }
  for (size_t i = 0; i < layers; ++i) {
    const RecurrentLayer& layer = block.layers[i];
    const bool last = i + 1 == layers;
    const bool decodes = last && !block.attention;
    const bool kept = last || !IsQrnn(layer) || ReadsPreviousInput(block.layers[i + 1]);
    // A GRU mixes its previous output, as floats, into the next one.
    const bool floats_kept = layer.cell == RecurrentCell::kGru;
    RecurrentState state{Make(decodes ? output : LayerName(i) + ".hidden", layer.Outputs(),
                              floats_kept, kept, At(layer.output)),
                         std::nullopt};
    if (layer.cell == RecurrentCell::kLstm || IsQrnn(layer)) {
      state.cell = builder.Floats(LayerName(i) + ".cell", layer.units, true);
    }
    states_.push_back(state);
  }
  decoded_ = states_.back().hidden;
  if (block.attention) {
    decoded_ = Make(output, block.layers.back().Outputs(), block.input_feed, true,
                    At(block.attention->output));
  }
  // Without attention the last layer starts with the encoder's states, and the fed vector with
  // zeros.
  fed_ = decoded_.floats;
  if (block.input_feed && !block.attention) {
    fed_ = builder.Floats("fed", block.layers.back().Outputs(), true);
  }
}

RecurrentLowering::Vector RecurrentLowering::Make(const std::string& name, uint64_t count,
                                                  bool floats_kept, bool codes_kept,
                                                  const ActivationQuantiser* quantiser) {
  const auto applied = builder_.Applied(quantiser);
  const BufferId floats = builder_.Floats(name, count, floats_kept || (codes_kept && !applied));
  if (!applied) return {floats, floats, quantiser};
  return {floats, builder_.Codes(name + ".codes", count, *applied, codes_kept), quantiser};
}

void RecurrentLowering::LowerPreviousProducts() {
  for (size_t i = 0; i < block_.layers.size(); ++i) {
    const RecurrentLayer& layer = block_.layers[i];
    previous_.emplace_back();
    if (!layer.recurrent_weight) continue;
    const BufferId left = IsQrnn(layer) ? InputOf(i).codes : states_[i].hidden.codes;
    const std::string name = LayerName(i) + ".recurrent";
    previous_.back() = builder_.Floats(name, uint64_t{GatesOf(layer.cell)} * layer.units);
    builder_.AddProduct(
        name, MatVec{*layer.recurrent_weight, layer.recurrent_bias, left, *previous_.back()});
  }
}

void RecurrentLowering::LowerLayers() {
  if (block_.input_feed) {
    builder_.AddNode("input_feed", Join{{{embedded_, 0, block_.inputs},
                                         {fed_, 0, block_.layers.back().Outputs()}},
                                        input_.floats});
  }
  LowerQuantised("embedded.quantise", input_, builder_);
  for (size_t i = 0; i < block_.layers.size(); ++i) {
    const RecurrentLayer& layer = block_.layers[i];
    const std::string name = LayerName(i);
    const BufferId input =
        builder_.Floats(name + ".input", uint64_t{GatesOf(layer.cell)} * layer.units);
    builder_.AddProduct(name + ".input",
                        MatVec{layer.input_weight, layer.input_bias, InputOf(i).codes, input});
    LowerGates(layer, name, input, previous_[i], states_[i], builder_);
    LowerQuantised(name + ".quantise", states_[i].hidden, builder_);
  }
  if (block_.attention) {
    LowerGlobalAttention(*block_.attention, *memory_, states_.back().hidden, decoded_, builder_);
  }
  if (fed_ != decoded_.floats) {
    builder_.AddNode("fed", Join{{{decoded_.floats, 0, block_.layers.back().Outputs()}}, fed_});
  }
}

void LowerGates(const RecurrentLayer& layer, const std::string& name, BufferId input,
                const std::optional<BufferId>& previous, const RecurrentState& state,
                PlanBuilder& builder) {
  const BufferId hidden = state.hidden.floats;
  const auto add = [&](Op op) { builder.AddNode(name + ".gates", std::move(op)); };
  if (layer.projection) {
    const ActivationQuantiser* quantiser = At(layer.projection->input);
    const auto applied = builder.Applied(quantiser);
    const BufferId wide = builder.Floats(name + ".wide", layer.units);
    const BufferId codes =
        applied ? builder.Codes(name + ".wide.codes", layer.units, *applied) : wide;
    add(LstmGates{input, *previous, *state.cell, wide});
    LowerQuantised(name + ".wide.quantise", {wide, codes, quantiser}, builder);
    builder.AddProduct(name + ".projection",
                       MatVec{layer.projection->weight, std::nullopt, codes, hidden});
    return;
  }
  switch (layer.cell) {
    case RecurrentCell::kLstm:
      return add(LstmGates{input, *previous, *state.cell, hidden});
    case RecurrentCell::kGru:
      return add(GruGates{input, *previous, hidden});
    case RecurrentCell::kTanh:
    case RecurrentCell::kRelu:
      return add(RnnGates{input, *previous, hidden, layer.cell == RecurrentCell::kRelu});
    case RecurrentCell::kQrnn:
      return add(QrnnGates{input, previous, *state.cell, hidden});
  }
}

}  // namespace kinglet

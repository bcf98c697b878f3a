#include "converters/families/recurrent_layers.h"

#include <string>

#include "format/limits.h"

namespace kinglet {
namespace {

bool IsMatrix(const CheckpointTensor& tensor) {
  return tensor.shape.size() == 2 && tensor.shape[0] > 0 && tensor.shape[1] > 0;
}

}  // namespace

std::vector<RecurrentLayerNames> TorchLayers(const std::string& module,
                                             std::span<const CheckpointTensor> weights) {
  std::vector<RecurrentLayerNames> layers;
  do {
    const std::string layer = "_l" + std::to_string(layers.size());
    layers.push_back({module + "weight_ih" + layer,
                      module + "bias_ih" + layer,
                      module + "weight_hh" + layer,
                      module + "bias_hh" + layer,
                      {},
                      {}});
    const std::string projection = module + "weight_hr" + layer;
    if (HasTensor(weights, projection)) layers.back().projection = projection;
  } while (HasTensor(weights, module + "weight_hh_l" + std::to_string(layers.size())));
  return layers;
}

void RecurrentLayers::Claim(const RecurrentLayerNames& names) {
  ClaimedLayer layer;
  layer.inputs = width_;
  for (const std::string& leftover : names.leftovers) network_.RemoveExcluded(leftover);
  if (cell_ == RecurrentCell::kQrnn) {
    ClaimQrnn(names, layer);
    layer.outputs = layer.units;
  } else {
    ClaimRecurrent(names, layer);
  }
  width_ = layer.outputs;
  layers_.push_back(layer);
}

void RecurrentLayers::ClaimRecurrent(const RecurrentLayerNames& names, ClaimedLayer& layer) {
  layer.recurrent_weight = network_.ClaimUnshaped(names.recurrent_weight);
  if (!names.projection.empty()) {
    layer.projection = network_.ClaimUnshaped(names.projection);
    if (layer.projection != nullptr && !IsMatrix(*layer.projection)) {
      network_.NoteMisshaped(*layer.projection, "[outputs, n] for n units");
      layer.projection = nullptr;
    }
  }
  if (layer.recurrent_weight != nullptr) FindCell(layer);
  const uint64_t rows = GatesOf(layer.cell) * layer.units;
  layer.input_weight = network_.Claim(names.input_weight, {rows, layer.inputs});
  layer.input_bias = network_.Claim(names.input_bias, {rows});
  if (names.recurrent_bias.empty()) return;
  layer.recurrent_bias = network_.Claim(names.recurrent_bias, {rows});
}

// Finds the units, and the cell if the family does not know it, from the recurrent weight
// [gates * n, n], or, of an LSTM with a projection [p, n], [4 n, p].
void RecurrentLayers::FindCell(ClaimedLayer& layer) {
  const CheckpointTensor& weight = *layer.recurrent_weight;
  if (layer.projection != nullptr) {
    layer.outputs = layer.projection->shape[0];
    layer.units = layer.projection->shape[1];
    const Shape expected = {4 * layer.units, layer.outputs};
    if (cell_.value_or(RecurrentCell::kLstm) != RecurrentCell::kLstm) {
      network_.NoteMisshaped(*layer.projection, "none, as the cell is no LSTM");
    } else if (weight.shape != expected) {
      network_.NoteMisshaped(weight, ShapeText(expected));
    }
    return;
  }
  const auto gates = [&](RecurrentCell cell) {
    return IsMatrix(weight) && weight.shape[1] <= kMaxExtent &&
           weight.shape[0] == GatesOf(cell) * weight.shape[1];
  };
  if (cell_) {
    layer.cell = *cell_;
  } else {
    layer.cell = gates(RecurrentCell::kGru) ? RecurrentCell::kGru : RecurrentCell::kLstm;
  }
  if (gates(layer.cell)) {
    layer.units = layer.outputs = weight.shape[1];
  } else {
    network_.NoteMisshaped(weight,
                           cell_ ? "[" + std::to_string(GatesOf(layer.cell)) + " n, n] for n units"
                                 : "[4 n, n] or [3 n, n] for n units");
  }
}

// A QRNN has one weight: for the token alone [3 n, inputs], or for it and the previous one
// [3 n, 2 inputs].
void RecurrentLayers::ClaimQrnn(const RecurrentLayerNames& names, ClaimedLayer& layer) {
  layer.cell = RecurrentCell::kQrnn;
  layer.input_weight = network_.ClaimUnshaped(names.input_weight);
  if (layer.input_weight != nullptr) {
    const CheckpointTensor& weight = *layer.input_weight;
    const bool matrix = IsMatrix(weight) && weight.shape[0] % 3 == 0;
    const uint64_t columns = matrix ? weight.shape[1] : 0;
    if (matrix && (layer.inputs == 0 || columns == layer.inputs || columns == 2 * layer.inputs)) {
      layer.units = weight.shape[0] / 3;
      layer.previous_input = columns != layer.inputs;
    } else {
      const std::string inputs = std::to_string(layer.inputs);
      network_.NoteMisshaped(weight,
                             "[3 n, " + inputs + "] or [3 n, 2 * " + inputs + "] for n units");
    }
  }
  layer.input_bias = network_.Claim(names.input_bias, {3 * layer.units});
}

RecurrentLayer RecurrentLayers::DescribeLayer(const ClaimedLayer& from) {
  RecurrentLayer layer{};
  layer.cell = from.cell;
  layer.units = static_cast<uint32_t>(from.units);
  if (from.previous_input) {
    const Shape half = {from.input_weight->shape[0], from.inputs};
    const std::string& name = from.input_weight->name;
    layer.input_weight =
        network_.Add(name + ".current", half, Role::kPrunedAlso, from.input_weight);
    layer.recurrent_weight = network_.Add(name + ".previous", half, Role::kPrunedAlso,
                                          from.input_weight, {0, from.inputs});
  } else {
    layer.input_weight = network_.AddWhole(*from.input_weight, Role::kPrunedAlso);
  }
  layer.input_bias = network_.AddWhole(*from.input_bias, Role::kQuantised);
  if (from.recurrent_weight != nullptr) {
    layer.recurrent_weight = network_.AddWhole(*from.recurrent_weight, Role::kPrunedAlso);
  }
  if (from.recurrent_bias != nullptr) {
    layer.recurrent_bias = network_.AddWhole(*from.recurrent_bias, Role::kQuantised);
  }
  if (from.projection != nullptr) {
    layer.projection = {static_cast<uint32_t>(from.outputs),
                        network_.AddWhole(*from.projection, Role::kPrunedAlso), std::nullopt};
  }
  return layer;
}

std::vector<uint64_t> RecurrentLayers::Units() const {
  std::vector<uint64_t> units;
  for (const ClaimedLayer& layer : layers_) units.push_back(layer.units);
  return units;
}

RecurrentDecoder RecurrentLayers::Describe() {
  RecurrentDecoder decoder;
  decoder.inputs = static_cast<uint32_t>(inputs_);
  for (const ClaimedLayer& layer : layers_) decoder.layers.push_back(DescribeLayer(layer));
  return decoder;
}

}  // namespace kinglet

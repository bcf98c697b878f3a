#include "format/validate_decoders.h"

#include <string>
#include <utility>

#include "format/limits.h"
#include "format/message_text.h"

namespace kinglet {
namespace {

class DecoderValidator : private BlockChecks {
 public:
  explicit DecoderValidator(const BlockChecks& checks) : BlockChecks(checks) {}

  Status Validate(const MicronetDecoder& decoder) const {
    KINGLET_RETURN_IF_ERROR(ValidateExtent("width", decoder.width));
    KINGLET_RETURN_IF_ERROR(ValidateExtent("heads", decoder.heads));
    KINGLET_RETURN_IF_ERROR(ValidateExtent("key size", decoder.key_size));
    KINGLET_RETURN_IF_ERROR(ValidateExtent("value size", decoder.value_size));
    KINGLET_RETURN_IF_ERROR(ValidateExtent("window", decoder.window));
    if (decoder.layers.empty() || decoder.layers.size() > kMaxLayers) {
      return InvalidPart("layers", "1 to " + std::to_string(kMaxLayers),
                         std::to_string(decoder.layers.size()));
    }
    if (decoder.start > StreamStart::kZeros) {
      return InvalidPart("start", "a number up to 1",
                         std::to_string(static_cast<int>(decoder.start)));
    }
    if (decoder.output)
      KINGLET_RETURN_IF_ERROR(ValidateQuantiser("output quantiser", *decoder.output));
    for (size_t i = 0; i < decoder.layers.size(); ++i) {
      KINGLET_RETURN_IF_ERROR(ValidateLayer(decoder, Numbered("layer", i), decoder.layers[i]));
    }
    return {};
  }

  Status ValidateLayer(const MicronetDecoder& decoder, const std::string& part,
                       const MicronetLayer& layer) const {
    const uint64_t d = decoder.width, heads = decoder.heads;
    // Each factor is at most 2^20, so these stay below 2^64.
    const uint64_t qkv = heads * (2 * uint64_t{decoder.key_size} + decoder.value_size);
    const uint64_t attended = heads * decoder.value_size;
    if (layer.fc0_weight >= tensors_.size()) {
      return ValidateTensorShape(part + ", fc0_weight", layer.fc0_weight, {});
    }
    const uint64_t inner = Rows(tensors_[layer.fc0_weight].shape);
    KINGLET_RETURN_IF_ERROR(ValidateExtent(part + ", rows of fc0_weight", inner));
    const struct {
      const char* name;
      TensorId id;
      Shape shape;
    } tensors[] = {
        {"norm1_gain", layer.norm1_gain, {d}},
        {"norm1_bias", layer.norm1_bias, {d}},
        {"qkv_weight", layer.qkv_weight, {qkv, d}},
        {"qkv_bias", layer.qkv_bias, {qkv}},
        {"positions", layer.positions, {decoder.key_size, decoder.window}},
        {"out_weight", layer.out_weight, {d, attended}},
        {"norm2_gain", layer.norm2_gain, {d}},
        {"norm2_bias", layer.norm2_bias, {d}},
        {"fc0_weight", layer.fc0_weight, {inner, d}},
        {"fc0_bias", layer.fc0_bias, {inner}},
        {"fc3_weight", layer.fc3_weight, {d, inner}},
        {"fc3_bias", layer.fc3_bias, {d}},
    };
    for (const auto& tensor : tensors) {
      KINGLET_RETURN_IF_ERROR(
          ValidateTensorShape(part + ", " + tensor.name, tensor.id, tensor.shape));
    }
    KINGLET_RETURN_IF_ERROR(ValidateNotCoded(part + ", positions", layer.positions));
    if (layer.quantisers.has_value() != decoder.output.has_value()) {
      return InvalidPart(
          part + ", quantisers",
          decoder.output ? "quantisers, as the output has one" : "none, as the output has none",
          layer.quantisers ? "quantisers" : "none");
    }
    return layer.quantisers ? ValidateQuantisers(part, *layer.quantisers) : Status();
  }

  Status ValidateQuantisers(const std::string& part,
                            const MicronetLayerQuantisers& quantisers) const {
    const std::pair<const char*, const ActivationQuantiser&> named[] = {
        {"norm1", quantisers.norm1},     {"qkv", quantisers.qkv},
        {"weights", quantisers.weights}, {"attended", quantisers.attended},
        {"norm2", quantisers.norm2},     {"inner", quantisers.inner},
        {"outer", quantisers.outer}};
    for (const auto& [name, quantiser] : named) {
      KINGLET_RETURN_IF_ERROR(ValidateQuantiser(part + ", quantiser " + name, quantiser));
    }
    return {};
  }

  Status Validate(const RecurrentDecoder& decoder) const {
    KINGLET_RETURN_IF_ERROR(ValidateExtent("inputs", decoder.inputs));
    if (decoder.layers.empty() || decoder.layers.size() > kMaxLayers) {
      return InvalidPart("layers", "1 to " + std::to_string(kMaxLayers),
                         std::to_string(decoder.layers.size()));
    }
    if (decoder.input)
      KINGLET_RETURN_IF_ERROR(ValidateQuantiser("input quantiser", *decoder.input));
    uint64_t inputs = decoder.inputs;
    for (size_t i = 0; i < decoder.layers.size(); ++i) {
      const RecurrentLayer& layer = decoder.layers[i];
      const std::string part = Numbered("layer", i);
      KINGLET_RETURN_IF_ERROR(ValidateRecurrentLayer(part, layer, inputs));
      if (layer.output.has_value() != decoder.input.has_value()) {
        return InvalidPart(
            part + ", output quantiser",
            decoder.input ? "one, as the input has one" : "none, as the input has none",
            layer.output ? "one" : "none");
      }
      inputs = layer.units;
    }
    return {};
  }

  // REQUIRES: inputs are in 1 .. kMaxExtent.
  Status ValidateRecurrentLayer(const std::string& part, const RecurrentLayer& layer,
                                uint64_t inputs) const {
    if (layer.cell > RecurrentCell::kQrnn) {
      return InvalidPart(part + ", cell", "a number up to 4",
                         std::to_string(static_cast<int>(layer.cell)));
    }
    KINGLET_RETURN_IF_ERROR(ValidateExtent(part + ", units", layer.units));
    const bool qrnn = layer.cell == RecurrentCell::kQrnn;
    const uint64_t rows = uint64_t{GatesOf(layer.cell)} * layer.units;
    KINGLET_RETURN_IF_ERROR(
        ValidateTensorShape(part + ", input weight", layer.input_weight, {rows, inputs}));
    if (layer.input_bias) {
      KINGLET_RETURN_IF_ERROR(
          ValidateTensorShape(part + ", input bias", *layer.input_bias, {rows}));
    }
    if (layer.recurrent_weight) {
      KINGLET_RETURN_IF_ERROR(ValidateTensorShape(part + ", recurrent weight",
                                                  *layer.recurrent_weight,
                                                  {rows, qrnn ? inputs : layer.units}));
    } else if (!qrnn) {
      return InvalidPart(part + ", recurrent weight", "one, as the cell is recurrent", "none");
    }
    if (layer.recurrent_bias) {
      if (qrnn)
        return InvalidPart(part + ", recurrent bias", "none, as a QRNN has one bias", "one");
      KINGLET_RETURN_IF_ERROR(
          ValidateTensorShape(part + ", recurrent bias", *layer.recurrent_bias, {rows}));
    }
    if (!layer.output) return {};
    return ValidateQuantiser(part + ", output quantiser", *layer.output);
  }
};

}  // namespace

Status ValidateDecoder(const BlockChecks& checks, const MicronetDecoder& decoder) {
  return DecoderValidator(checks).Validate(decoder);
}

Status ValidateDecoder(const BlockChecks& checks, const RecurrentDecoder& decoder) {
  return DecoderValidator(checks).Validate(decoder);
}

}  // namespace kinglet

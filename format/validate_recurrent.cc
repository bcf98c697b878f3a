#include "format/validate_recurrent.h"

#include <optional>
#include <string>
#include <vector>

#include "format/limits.h"
#include "format/message_text.h"

namespace kinglet {
namespace {

Status ValidateProjection(const BlockChecks& checks, const std::string& part,
                          const RecurrentLayer& layer) {
  const RecurrentProjection& projection = *layer.projection;
  if (layer.cell != RecurrentCell::kLstm) {
    return checks.InvalidPart(part, "none, as the cell is no LSTM", "one");
  }
  KINGLET_RETURN_IF_ERROR(checks.ValidateExtent(part + ", outputs", projection.outputs));
  KINGLET_RETURN_IF_ERROR(checks.ValidateTensorShape(part + ", weight", projection.weight,
                                                     {projection.outputs, layer.units}));
  KINGLET_RETURN_IF_ERROR(checks.ValidatePresence(
      part + ", input quantiser", projection.input.has_value(), layer.output.has_value(),
      layer.output ? "the output has one" : "the output has none"));
  if (!projection.input) return {};
  return checks.ValidateQuantiser(part + ", input quantiser", *projection.input);
}

// REQUIRES: inputs are in 1 .. kMaxExtent.
Status ValidateRecurrentLayer(const BlockChecks& checks, const std::string& part,
                              const RecurrentLayer& layer, uint64_t inputs) {
  KINGLET_RETURN_IF_ERROR(
      checks.ValidateEnumerator(part + ", cell", layer.cell, RecurrentCell::kQrnn));
  KINGLET_RETURN_IF_ERROR(checks.ValidateExtent(part + ", units", layer.units));
  if (layer.projection) {
    KINGLET_RETURN_IF_ERROR(ValidateProjection(checks, part + ", projection", layer));
  }
  const bool qrnn = layer.cell == RecurrentCell::kQrnn;
  const uint64_t rows = uint64_t{GatesOf(layer.cell)} * layer.units;
  KINGLET_RETURN_IF_ERROR(
      checks.ValidateTensorShape(part + ", input weight", layer.input_weight, {rows, inputs}));
  KINGLET_RETURN_IF_ERROR(checks.ValidateOptional(part + ", input bias", layer.input_bias, {rows}));
  if (!qrnn) {
    KINGLET_RETURN_IF_ERROR(checks.ValidatePresence(part + ", recurrent weight",
                                                    layer.recurrent_weight.has_value(), true,
                                                    "the cell is recurrent"));
  }
  KINGLET_RETURN_IF_ERROR(checks.ValidateOptional(part + ", recurrent weight",
                                                  layer.recurrent_weight,
                                                  {rows, qrnn ? inputs : layer.Outputs()}));
  if (qrnn) {
    KINGLET_RETURN_IF_ERROR(checks.ValidatePresence(
        part + ", recurrent bias", layer.recurrent_bias.has_value(), false, "a QRNN has one bias"));
  }
  KINGLET_RETURN_IF_ERROR(
      checks.ValidateOptional(part + ", recurrent bias", layer.recurrent_bias, {rows}));
  if (!layer.output) return {};
  return checks.ValidateQuantiser(part + ", output quantiser", *layer.output);
}

// Checks that the layers have output quantisers iff the input has one.
Status ValidateOutputQuantiser(const BlockChecks& checks, const std::string& part,
                               const RecurrentLayer& layer, bool needed) {
  return checks.ValidatePresence(part + ", output quantiser", layer.output.has_value(), needed,
                                 needed ? "the input has one" : "the input has none");
}

bool Equal(const std::optional<ActivationQuantiser>& a,
           const std::optional<ActivationQuantiser>& b) {
  if (!a || !b) return !a && !b;
  return a->max_abs == b->max_abs && a->scale == b->scale;
}

Status ValidateAttentionQuantisers(const BlockChecks& checks, const GlobalAttention& attention,
                                   bool quantised) {
  const bool general = attention.score == AttentionScore::kGeneral;
  const bool products = attention.score != AttentionScore::kMlp;
  const struct {
    const char* name;
    const std::optional<ActivationQuantiser>& quantiser;
    bool needed;
  } named[] = {{"query", attention.query, quantised && general},
               {"weights", attention.weights, quantised && products},
               {"joined", attention.joined, quantised},
               {"output", attention.output, quantised}};
  for (const auto& [name, quantiser, needed] : named) {
    const std::string part = std::string("attention, quantiser ") + name;
    KINGLET_RETURN_IF_ERROR(checks.ValidatePresence(
        part, quantiser.has_value(), needed,
        !quantised ? "the layers have none"
                   : (needed ? "the layers have one" : "its score needs none")));
    if (quantiser) KINGLET_RETURN_IF_ERROR(checks.ValidateQuantiser(part, *quantiser));
  }
  return {};
}

Status ValidateBridge(const BlockChecks& checks, const EncoderBridge& bridge, bool cells,
                      uint64_t width) {
  const BlockTensor tensors[] = {{"hidden weight", bridge.hidden_weight, {width, width}},
                                 {"hidden bias", bridge.hidden_bias, {width}},
                                 {"cell weight", bridge.cell_weight, {width, width}},
                                 {"cell bias", bridge.cell_bias, {width}}};
  KINGLET_RETURN_IF_ERROR(
      checks.ValidatePresence("bridge, cell weight", bridge.cell_weight.has_value(), cells,
                              cells ? "the cell is an LSTM" : "the cell is no LSTM"));
  if (bridge.cell_bias) {
    KINGLET_RETURN_IF_ERROR(
        checks.ValidatePresence("bridge, cell bias", true, cells, "the cell is no LSTM"));
  }
  return checks.ValidateTensors("bridge", tensors);
}

// Checks the layers of both directions, and of the decoder, whose first states they give.
Status ValidateEncoderLayers(const BlockChecks& checks, const RecurrentEncoder& encoder,
                             const RecurrentDecoder& decoder) {
  const bool both = !encoder.backward.empty();
  const size_t layers = encoder.forward.size();
  KINGLET_RETURN_IF_ERROR(checks.ValidateRange("forward layers", layers, 1, kMaxLayers));
  if (both && encoder.backward.size() != layers) {
    return checks.InvalidPart("backward layers", "none or " + std::to_string(layers),
                              std::to_string(encoder.backward.size()));
  }
  if (decoder.layers.size() != layers) {
    return checks.InvalidPart("forward layers",
                              "the decoder's " + std::to_string(decoder.layers.size()),
                              std::to_string(layers));
  }
  uint64_t inputs = encoder.embedding.width;
  for (size_t i = 0; i < layers; ++i) {
    const RecurrentLayer& ahead = encoder.forward[i];
    const std::string part = Numbered("forward layer", i);
    KINGLET_RETURN_IF_ERROR(ValidateRecurrentLayer(checks, part, ahead, inputs));
    KINGLET_RETURN_IF_ERROR(
        ValidateOutputQuantiser(checks, part, ahead, encoder.input.has_value()));
    if (ahead.projection || decoder.layers[i].projection ||
        (both && encoder.backward[i].projection)) {
      return checks.InvalidPart(part + ", projection", "none in a translation model", "one");
    }
    if (ahead.cell == RecurrentCell::kQrnn || ahead.cell != decoder.layers[i].cell) {
      return checks.InvalidPart(part + ", cell", "the decoder's, and no QRNN", "another");
    }
    const uint64_t units = uint64_t{ahead.units} * (both ? 2 : 1);
    if (ahead.units != encoder.forward[0].units || units != decoder.layers[i].units) {
      return checks.InvalidPart(part + ", units",
                                both ? "half of those of every layer of the decoder"
                                     : "those of every layer of the decoder",
                                std::to_string(ahead.units));
    }
    if (both) {
      const RecurrentLayer& back = encoder.backward[i];
      const std::string other = Numbered("backward layer", i);
      KINGLET_RETURN_IF_ERROR(ValidateRecurrentLayer(checks, other, back, inputs));
      if (back.cell != ahead.cell || back.units != ahead.units ||
          !Equal(back.output, ahead.output)) {
        return checks.InvalidPart(other, "the forward layer's cell, units and quantiser", "others");
      }
    }
    inputs = units;
  }
  return {};
}

}  // namespace

Status ValidateDecoder(const BlockChecks& checks, const RecurrentDecoder& decoder) {
  KINGLET_RETURN_IF_ERROR(checks.ValidateExtent("inputs", decoder.inputs));
  KINGLET_RETURN_IF_ERROR(checks.ValidateRange("layers", decoder.layers.size(), 1, kMaxLayers));
  if (decoder.input) {
    KINGLET_RETURN_IF_ERROR(checks.ValidateQuantiser("input quantiser", *decoder.input));
  }
  uint64_t inputs = decoder.inputs;
  if (decoder.input_feed) inputs += decoder.layers.back().Outputs();
  for (size_t i = 0; i < decoder.layers.size(); ++i) {
    const RecurrentLayer& layer = decoder.layers[i];
    const std::string part = Numbered("layer", i);
    KINGLET_RETURN_IF_ERROR(ValidateRecurrentLayer(checks, part, layer, inputs));
    KINGLET_RETURN_IF_ERROR(
        ValidateOutputQuantiser(checks, part, layer, decoder.input.has_value()));
    inputs = layer.Outputs();
  }
  return {};
}

Status ValidateGlobalAttention(const BlockChecks& checks, const RecurrentDecoder& decoder,
                               const RecurrentEncoder* encoder) {
  if (encoder == nullptr) {
    KINGLET_RETURN_IF_ERROR(checks.ValidatePresence("attention", decoder.attention.has_value(),
                                                    false, "the model has no recurrent encoder"));
    return checks.ValidatePresence("input feeding", decoder.input_feed, false,
                                   "the model has no recurrent encoder");
  }
  const bool quantised = decoder.input.has_value();
  KINGLET_RETURN_IF_ERROR(
      checks.ValidatePresence("input quantiser", quantised, encoder->input.has_value(),
                              encoder->input ? "the encoder has one" : "the encoder has none"));
  if (!decoder.attention) return {};
  const GlobalAttention& attention = *decoder.attention;
  KINGLET_RETURN_IF_ERROR(
      checks.ValidateEnumerator("attention, score", attention.score, AttentionScore::kMlp));
  const bool additive = attention.score == AttentionScore::kMlp;
  const bool queries = attention.score != AttentionScore::kDot;
  const char* const reason = "its kind of score decides";
  const struct {
    const char* name;
    bool present, needed;
  } parts[] = {{"query weight", attention.query_weight.has_value(), queries},
               {"query bias", attention.query_bias.has_value(), additive && attention.query_bias},
               {"memory weight", attention.memory_weight.has_value(), additive},
               {"score weight", attention.score_weight.has_value(), additive}};
  for (const auto& part : parts) {
    KINGLET_RETURN_IF_ERROR(checks.ValidatePresence(std::string("attention, ") + part.name,
                                                    part.present, part.needed, reason));
  }
  const uint64_t n = decoder.layers.back().Outputs();
  const BlockTensor tensors[] = {
      {"query weight", attention.query_weight, {n, n}},
      {"query bias", attention.query_bias, {n}},
      {"memory weight", attention.memory_weight, {n, n}},
      {"score weight", attention.score_weight, {1, n}},
      {"out weight", attention.out_weight, {n, 2 * n}},
      {"out bias", attention.out_bias, {n}},
  };
  KINGLET_RETURN_IF_ERROR(checks.ValidateTensors("attention", tensors));
  if (additive) {
    KINGLET_RETURN_IF_ERROR(
        checks.ValidateNotCoded("attention, score weight", *attention.score_weight));
  }
  return ValidateAttentionQuantisers(checks, attention, quantised);
}

Status ValidateEncoder(const BlockChecks& checks, const RecurrentEncoder& encoder,
                       const RecurrentDecoder& decoder) {
  KINGLET_RETURN_IF_ERROR(checks.ValidateExtent("window", encoder.window));
  if (encoder.input) {
    KINGLET_RETURN_IF_ERROR(checks.ValidateQuantiser("input quantiser", *encoder.input));
  }
  KINGLET_RETURN_IF_ERROR(ValidateEncoderLayers(checks, encoder, decoder));
  if (!encoder.bridge) return {};
  return ValidateBridge(checks, *encoder.bridge, encoder.forward[0].cell == RecurrentCell::kLstm,
                        uint64_t{encoder.forward[0].units} * encoder.forward.size());
}

}  // namespace kinglet

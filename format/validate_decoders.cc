#include "format/validate_decoders.h"

#include <algorithm>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "format/limits.h"
#include "format/message_text.h"
#include "format/overloaded.h"

namespace kinglet {
namespace {

class DecoderValidator : private BlockChecks {
 public:
  explicit DecoderValidator(const BlockChecks& checks) : BlockChecks(checks) {}

  Status Validate(const TransformerDecoder& decoder) const {
    KINGLET_RETURN_IF_ERROR(ValidateExtent("width", decoder.width));
    KINGLET_RETURN_IF_ERROR(ValidateExtent("heads", decoder.heads));
    KINGLET_RETURN_IF_ERROR(ValidateExtent("key size", decoder.key_size));
    KINGLET_RETURN_IF_ERROR(ValidateExtent("value size", decoder.value_size));
    KINGLET_RETURN_IF_ERROR(ValidateExtent("window", decoder.window));
    KINGLET_RETURN_IF_ERROR(ValidateRange("layers", decoder.layers.size(), 1, kMaxLayers));
    KINGLET_RETURN_IF_ERROR(ValidateEnumerator("start", decoder.start, StreamStart::kZeros));
    if (decoder.start != StreamStart::kMasked && IsAbsolute(decoder.positions)) {
      return InvalidPart("start", "masked, as positions are absolute", "zeros");
    }
    KINGLET_RETURN_IF_ERROR(ValidateEnumerator("norm order", decoder.norm_order, NormOrder::kEnd));
    KINGLET_RETURN_IF_ERROR(ValidatePositive("epsilon", decoder.epsilon));
    KINGLET_RETURN_IF_ERROR(
        ValidateEnumerator("activation", decoder.activation, Activation::kTanhGelu));
    if (decoder.masked_token && decoder.start != StreamStart::kMasked) {
      return InvalidPart("masked token", "none, as the stream starts with zeros", "one");
    }
    KINGLET_RETURN_IF_ERROR(
        std::visit([&](const auto& positions) { return ValidatePositions(decoder, positions); },
                   decoder.positions));
    if (decoder.final_norm_gain.has_value() != decoder.final_norm_bias.has_value()) {
      return InvalidPart("final norm", "a gain and a bias, or neither", "one of them");
    }
    KINGLET_RETURN_IF_ERROR(
        ValidateOptional("final_norm_gain", decoder.final_norm_gain, {decoder.width}));
    KINGLET_RETURN_IF_ERROR(
        ValidateOptional("final_norm_bias", decoder.final_norm_bias, {decoder.width}));
    if (decoder.output) {
      KINGLET_RETURN_IF_ERROR(ValidateQuantiser("output quantiser", *decoder.output));
    }
    for (size_t i = 0; i < decoder.layers.size(); ++i) {
      KINGLET_RETURN_IF_ERROR(ValidateLayer(decoder, Numbered("layer", i), decoder.layers[i]));
    }
    const auto* relative = std::get_if<RelativeSinusoids>(&decoder.positions);
    return relative == nullptr ? Status() : ValidateRelativeProducts(decoder, *relative);
  }

  // Opening computes the rows of all distances. REQUIRES: everything else is valid.
  Status ValidateRelativeProducts(const TransformerDecoder& decoder,
                                  const RelativeSinusoids& positions) const {
    uint64_t stored_bytes = 0;
    for (const TensorView& tensor : tensors_) stored_bytes += StoredBytes(tensor);
    const uint64_t rows = std::min<uint64_t>(
        decoder.window, positions.clamp ? uint64_t{*positions.clamp} + 1 : decoder.window);
    const uint64_t columns =
        std::max(uint64_t{decoder.heads} * decoder.key_size, kLeastRelativeExtent);
    const uint64_t width = std::max<uint64_t>(decoder.width, kLeastRelativeExtent);
    const uint64_t max_products =
        std::min(kRelativeProducts + kRelativeProductsPerByte * stored_bytes, kMaxRelativeProducts);
    if (rows * columns > max_products / width / decoder.layers.size()) {  // below 2^61
      return InvalidPart(
          "window",
          "at most " + std::to_string(max_products) +
              " multiplications for the rows of its distances, with tensors of " +
              BytesText(stored_bytes),
          std::to_string(rows) + " rows of " + std::to_string(decoder.layers.size()) + " layers");
    }
    return {};
  }

  Status ValidatePositions(const TransformerDecoder&, const SlotPositions&) const { return {}; }
  Status ValidatePositions(const TransformerDecoder&, const NoPositions&) const { return {}; }
  Status ValidatePositions(const TransformerDecoder& decoder,
                           const RelativeSinusoids& positions) const {
    if (positions.clamp) {
      KINGLET_RETURN_IF_ERROR(ValidateRange("clamp", *positions.clamp, 0, kMaxExtent));
    }
    return ValidateFrequencies(decoder, positions.frequencies);
  }
  Status ValidatePositions(const TransformerDecoder& decoder,
                           const AbsoluteSinusoids& positions) const {
    // The sum with the window stays below 2^24, so every position is an exact float32.
    KINGLET_RETURN_IF_ERROR(ValidateRange("first position", positions.first, 0, kMaxExtent));
    return ValidateFrequencies(decoder, positions.frequencies);
  }
  Status ValidatePositions(const TransformerDecoder& decoder,
                           const PositionTable& positions) const {
    KINGLET_RETURN_IF_ERROR(
        ValidateTensorShape("position table", positions.table, {decoder.window, decoder.width}));
    return ValidateNotCoded("position table", positions.table);
  }

  Status ValidateFrequencies(const TransformerDecoder& decoder, TensorId frequencies) const {
    if (decoder.width % 2 != 0) {
      return InvalidPart("width", "an even number, half of it sines",
                         std::to_string(decoder.width));
    }
    KINGLET_RETURN_IF_ERROR(
        ValidateTensorShape("frequencies", frequencies, {uint64_t{decoder.width} / 2}));
    const TensorView& tensor = tensors_[frequencies];
    const auto* dense = std::get_if<DenseView>(&tensor.values);
    if (dense == nullptr || dense->type != FloatType::kF32 || tensor.mask) {
      return InvalidPart("frequencies", "float32 values, all stored",
                         "tensor " + tensor.name + " in another encoding");
    }
    const std::vector<float> values = DecodedValues(tensor);
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i] >= 0 && values[i] <= kMaxFrequency) continue;
      return InvalidPart(Numbered("frequency", i), "0 to " + NumberText(kMaxFrequency),
                         NumberText(values[i]));
    }
    return {};
  }

  // A tensor of a layer that only some kinds of positions have; an empty shape: the tensor must be
  // absent.
  Status ValidatePositionTensor(const std::string& part, const std::optional<TensorId>& id,
                                const Shape& shape) const {
    KINGLET_RETURN_IF_ERROR(ValidatePresence(
        part, id.has_value(), !shape.empty(),
        shape.empty() ? "positions of this kind have none" : "positions of this kind need it"));
    if (!id) return {};
    KINGLET_RETURN_IF_ERROR(ValidateTensorShape(part, *id, shape));
    return ValidateNotCoded(part, *id);
  }

  Status ValidateLayer(const TransformerDecoder& decoder, const std::string& part,
                       const TransformerLayer& layer) const {
    const uint64_t d = decoder.width, heads = decoder.heads;
    // Each factor is at most 2^20, so the products stay below 2^64.
    const uint64_t qkv = heads * (2 * uint64_t{decoder.key_size} + decoder.value_size);
    const uint64_t attended = heads * decoder.value_size;
    if (layer.inner_weight >= tensors_.size()) {
      return ValidateTensorShape(part + ", inner_weight", layer.inner_weight, {});
    }
    const uint64_t inner = Rows(tensors_[layer.inner_weight].shape);
    KINGLET_RETURN_IF_ERROR(ValidateExtent(part + ", rows of inner_weight", inner));
    const BlockTensor tensors[] = {
        {"attention_norm_gain", layer.attention_norm_gain, {d}},
        {"attention_norm_bias", layer.attention_norm_bias, {d}},
        {"qkv_weight", layer.qkv_weight, {qkv, d}},
        {"qkv_bias", layer.qkv_bias, {qkv}},
        {"out_weight", layer.out_weight, {d, attended}},
        {"out_bias", layer.out_bias, {d}},
        {"inner_norm_gain", layer.inner_norm_gain, {d}},
        {"inner_norm_bias", layer.inner_norm_bias, {d}},
        {"inner_weight", layer.inner_weight, {inner, d}},
        {"inner_bias", layer.inner_bias, {inner}},
        {"outer_weight", layer.outer_weight, {d, inner}},
        {"outer_bias", layer.outer_bias, {d}},
    };
    KINGLET_RETURN_IF_ERROR(ValidateTensors(part, tensors));
    KINGLET_RETURN_IF_ERROR(ValidateLayerNorms(decoder, part, layer));
    KINGLET_RETURN_IF_ERROR(ValidateLayerPositions(decoder, part, layer));
    KINGLET_RETURN_IF_ERROR(ValidatePresence(
        part + ", quantisers", layer.quantisers.has_value(), decoder.output.has_value(),
        decoder.output ? "the output has a quantiser" : "the output has no quantiser"));
    return layer.quantisers ? ValidateLayerQuantisers(part, *layer.quantisers) : Status();
  }

  // Which norms a layer has depends on their order.
  Status ValidateLayerNorms(const TransformerDecoder& decoder, const std::string& part,
                            const TransformerLayer& layer) const {
    const bool end = decoder.norm_order == NormOrder::kEnd;
    const char* const reason = end ? "the norm is at the layer's end" : "each part has a norm";
    const struct {
      const char* name;
      const std::optional<TensorId>& id;
    } norms[] = {{"attention_norm_gain", layer.attention_norm_gain},
                 {"attention_norm_bias", layer.attention_norm_bias},
                 {"inner_norm_gain", layer.inner_norm_gain},
                 {"inner_norm_bias", layer.inner_norm_bias}};
    for (const auto& [name, id] : norms) {
      KINGLET_RETURN_IF_ERROR(ValidatePresence(part + ", " + name, id.has_value(), !end, reason));
    }
    KINGLET_RETURN_IF_ERROR(
        ValidatePresence(part + ", end_epsilon", layer.end_epsilon.has_value(), end, reason));
    return end ? ValidatePositive(part + ", end_epsilon", *layer.end_epsilon) : Status();
  }

  // The parts of a layer that depend on the kind of positions.
  Status ValidateLayerPositions(const TransformerDecoder& decoder, const std::string& part,
                                const TransformerLayer& layer) const {
    const uint64_t heads = decoder.heads, key_size = decoder.key_size;
    Shape positions, bias;  // empty: no tensor
    std::visit(Overloaded{
                   [&](const SlotPositions&) {
                     positions = {key_size, decoder.window};
                   },
                   [&](const RelativeSinusoids&) {
                     positions = {heads * key_size, decoder.width};
                     bias = {heads, key_size};
                   },
                   [](const AbsoluteSinusoids&) {},
                   [](const PositionTable&) {},
                   [](const NoPositions&) {},
               },
               decoder.positions);
    KINGLET_RETURN_IF_ERROR(
        ValidatePositionTensor(part + ", positions", layer.positions, positions));
    KINGLET_RETURN_IF_ERROR(
        ValidatePositionTensor(part + ", content_bias", layer.content_bias, bias));
    KINGLET_RETURN_IF_ERROR(
        ValidatePositionTensor(part + ", position_bias", layer.position_bias, bias));
    if (!layer.start) return {};
    const bool relative = !bias.empty();
    if (!relative || decoder.start != StreamStart::kZeros ||
        decoder.norm_order != NormOrder::kPre) {
      return InvalidPart(
          part + ", start",
          "none, unless positions are relative, the stream starts with zeros and the norm is first",
          "one");
    }
    return ValidateTensorShape(part + ", start", *layer.start,
                               {heads * (key_size + decoder.value_size)});
  }

  Status ValidateLayerQuantisers(const std::string& part,
                                 const TransformerLayerQuantisers& quantisers) const {
    const BlockQuantiser named[] = {{"attention_input", quantisers.attention_input},
                                    {"qkv", quantisers.qkv},
                                    {"weights", quantisers.weights},
                                    {"attended", quantisers.attended},
                                    {"inner_input", quantisers.inner_input},
                                    {"inner", quantisers.inner},
                                    {"outer", quantisers.outer}};
    return ValidateQuantisers(part, named);
  }
};

}  // namespace

Status ValidateDecoder(const BlockChecks& checks, const TransformerDecoder& decoder) {
  return DecoderValidator(checks).Validate(decoder);
}

}  // namespace kinglet

#include "tests/support/transformer_builder.h"

#include <bit>
#include <cmath>
#include <string>
#include <utility>

#include "tests/support/tensor_maker.h"

namespace kinglet {
namespace {

class TransformerModelBuilder : TensorMaker {
 public:
  TransformerModelBuilder(const TinyTransformerOptions& options, ModelDraft& draft)
      : TensorMaker(draft, options.seed), options_(options) {}

  void Build() {
    ModelDescription& description = draft_.description;
    description.provenance = {"kinglet tests", "transformer-xl", "model.pt", std::string(32, '0'),
                              ""};
    description.vocabulary_size = options_.vocabulary_size;
    const TensorId table = Matrix("word_emb", options_.vocabulary_size, options_.width);
    AdaptiveEmbedding embedding;
    embedding.name = "embed";
    embedding.width = options_.width;
    embedding.scale = std::sqrt(static_cast<double>(options_.width));
    embedding.bins.push_back({0, options_.vocabulary_size, table, std::nullopt});
    AdaptiveSoftmax softmax{};
    softmax.name = "softmax";
    softmax.width = options_.width;
    softmax.head_size = options_.vocabulary_size;
    softmax.head_table = table;
    softmax.head_bias = Vector("crit.bias", options_.vocabulary_size);
    description.blocks.emplace_back(std::move(embedding));
    description.blocks.emplace_back(MakeDecoder());
    description.blocks.emplace_back(std::move(softmax));
  }

 private:
  TensorId Vector(const std::string& name, uint64_t size) { return Floats(name, {size}, 0, 0.5f); }

  TensorId Matrix(const std::string& name, uint64_t rows, uint64_t cols) {
    const float limit = std::sqrt(3.0f / static_cast<float>(cols));
    if (options_.bits == 0) return Floats(name, {rows, cols}, 0, limit);
    return Codes(name, {rows, cols}, options_.bits, [&](float largest) {
      // Low mantissa bits are cleared, as passes/quantise does, so that code * scale is exact.
      const float scale = limit * (1 + 0.5f * random_.Signed()) / largest;
      return std::bit_cast<float>(std::bit_cast<uint32_t>(scale) & (~uint32_t{0} << options_.bits));
    });
  }

  // The maximum is a power of two times the scale, so that multiples of the scale are exact.
  ActivationQuantiser Quantiser(float max_abs) const {
    return {max_abs, max_abs / static_cast<float>(1 << (options_.bits - 1))};
  }

  // 100^(-2 j / width): at most 1, and clearly different even in a narrow model.
  TensorId Frequencies() {
    DenseF32 values;
    for (uint32_t j = 0; j < options_.width / 2; ++j) {
      values.values.push_back(
          static_cast<float>(std::pow(100.0, -2.0 * j / static_cast<double>(options_.width))));
    }
    return Add({"pos_emb.inv_freq", {options_.width / 2}, std::move(values), false, true});
  }

  Positions MakePositions() {
    switch (options_.positions) {
      case TinyPositions::kSlots:
        return SlotPositions{};
      case TinyPositions::kRelative:
        return RelativeSinusoids{Frequencies(), options_.clamp};
      case TinyPositions::kAbsolute:
        return AbsoluteSinusoids{Frequencies(), options_.first};
      case TinyPositions::kTable:
        return PositionTable{Floats("pe", {options_.window, options_.width}, 0, 1)};
    }
    return SlotPositions{};
  }

  void AddLayerPositions(const std::string& name, TransformerLayer& layer) {
    const uint64_t heads = options_.heads, key_size = options_.key_size;
    if (options_.positions == TinyPositions::kSlots) {
      layer.positions = Floats(name + "pos_emb", {key_size, options_.window}, 0, 1);
    }
    if (options_.positions != TinyPositions::kRelative) return;
    layer.positions = Matrix(name + "r_net", heads * key_size, options_.width);
    if (options_.tied_position_biases && content_bias_) {
      layer.content_bias = content_bias_;
      layer.position_bias = position_bias_;
    } else {
      layer.content_bias = content_bias_ = Floats(name + "r_w_bias", {heads, key_size}, 0, 1);
      layer.position_bias = position_bias_ = Floats(name + "r_r_bias", {heads, key_size}, 0, 1);
    }
    if (options_.start_rows) {
      layer.start = Vector(name + "start", heads * (key_size + options_.value_size));
    }
  }

  TransformerLayer MakeLayer(const std::string& name) {
    const uint64_t d = options_.width, inner = options_.inner;
    const uint64_t attended = uint64_t{options_.heads} * options_.value_size;
    const uint64_t rows = attended + uint64_t{2} * options_.heads * options_.key_size;
    TransformerLayer layer{};
    layer.attention_norm_gain = Floats(name + "attention_norm.weight", {d}, 1, 0.25f);
    layer.attention_norm_bias = Floats(name + "attention_norm.bias", {d}, 0, 0.25f);
    layer.qkv_weight = Matrix(name + "qkv", rows, d);
    if (options_.biases) layer.qkv_bias = Vector(name + "qkv.bias", rows);
    AddLayerPositions(name, layer);
    layer.out_weight = Matrix(name + "out", d, attended);
    if (options_.biases) layer.out_bias = Vector(name + "out.bias", d);
    layer.inner_norm_gain = Floats(name + "inner_norm.weight", {d}, 1, 0.25f);
    layer.inner_norm_bias = Floats(name + "inner_norm.bias", {d}, 0, 0.25f);
    layer.inner_weight = Matrix(name + "inner", inner, d);
    layer.inner_bias = Vector(name + "inner.bias", inner);
    layer.outer_weight = Matrix(name + "outer", d, inner);
    layer.outer_bias = Vector(name + "outer.bias", d);
    if (options_.quantised) {
      layer.quantisers =
          TransformerLayerQuantisers{Quantiser(3), Quantiser(4), Quantiser(1),   Quantiser(2),
                                     Quantiser(3), Quantiser(5), Quantiser(2.5f)};
    }
    return layer;
  }

  TransformerDecoder MakeDecoder() {
    TransformerDecoder decoder;
    decoder.name = "decoder";
    decoder.width = options_.width;
    decoder.heads = options_.heads;
    decoder.key_size = options_.key_size;
    decoder.value_size = options_.value_size;
    decoder.window = options_.window;
    decoder.start = options_.start;
    decoder.norm_order = options_.norm_order;
    decoder.epsilon = options_.epsilon;
    decoder.positions = MakePositions();
    for (uint32_t i = 0; i < options_.layers; ++i) {
      decoder.layers.push_back(MakeLayer("layers." + std::to_string(i) + "."));
    }
    if (options_.final_norm) {
      decoder.final_norm_gain = Floats("norm.weight", {options_.width}, 1, 0.25f);
      decoder.final_norm_bias = Floats("norm.bias", {options_.width}, 0, 0.25f);
    }
    if (options_.quantised) decoder.output = Quantiser(6);
    return decoder;
  }

  const TinyTransformerOptions options_;
  std::optional<TensorId> content_bias_, position_bias_;
};

}  // namespace

ModelDraft TinyTransformer(const TinyTransformerOptions& options) {
  ModelDraft draft;
  TransformerModelBuilder(options, draft).Build();
  return draft;
}

}  // namespace kinglet

#include "tests/support/recurrent_translation_builder.h"

#include <string>
#include <utility>

#include "tests/support/tensor_maker.h"

namespace kinglet {
namespace {

class RecurrentTranslationBuilder : TensorMaker {
 public:
  RecurrentTranslationBuilder(const TinyRecurrentTranslationOptions& options, ModelDraft& draft)
      : TensorMaker(draft, options.seed), options_(options) {}

  void Build() {
    ModelDescription& description = draft_.description;
    description.provenance = {"kinglet tests", "opennmt", "model.pt", std::string(32, '0'), ""};
    description.vocabulary_size = options_.target_words;
    description.start_token = 2;
    AdaptiveEmbedding embedding = Embedding("target", options_.target_words, options_.target_width);
    embedding.name = "embedding";
    description.blocks = {Encoder(), std::move(embedding), Decoder()};
    AdaptiveSoftmax softmax{};
    softmax.name = "generator";
    softmax.width = options_.units;
    softmax.head_size = options_.target_words;
    softmax.head_table = Matrix("generator.weight", options_.target_words, options_.units);
    softmax.head_bias = Vector("generator.bias", options_.target_words);
    description.blocks.emplace_back(std::move(softmax));
  }

 private:
  TensorId Matrix(const std::string& name, uint32_t rows, uint32_t columns) {
    if (!options_.quantised) return Floats(name, {rows, columns}, 0, 0.7f);
    return Codes(name, {rows, columns}, 9, [](float largest) { return 0.7f / largest; });
  }
  TensorId Vector(const std::string& name, uint32_t size) { return Floats(name, {size}, 0, 0.7f); }
  std::optional<ActivationQuantiser> Quantiser(float limit) const {
    if (!options_.quantised) return std::nullopt;
    return ActivationQuantiser{limit, limit / 255};
  }

  AdaptiveEmbedding Embedding(const std::string& name, uint32_t words, uint32_t width) {
    AdaptiveEmbedding embedding;
    embedding.width = width;
    embedding.scale = 1;
    embedding.bins.push_back({0, words, Matrix(name + ".table", words, width), std::nullopt});
    return embedding;
  }

  RecurrentLayer Layer(const std::string& name, uint32_t inputs, uint32_t units, float limit) {
    const uint32_t rows = GatesOf(options_.cell) * units;
    RecurrentLayer layer{};
    layer.cell = options_.cell;
    layer.units = units;
    layer.input_weight = Matrix(name + ".input.weight", rows, inputs);
    layer.input_bias = Vector(name + ".input.bias", rows);
    layer.recurrent_weight = Matrix(name + ".recurrent.weight", rows, units);
    layer.recurrent_bias = Vector(name + ".recurrent.bias", rows);
    layer.output = Quantiser(limit);
    return layer;
  }

  RecurrentEncoder Encoder() {
    const bool both = options_.both_directions;
    const uint32_t units = both ? options_.units / 2 : options_.units;
    RecurrentEncoder encoder;
    encoder.name = "encoder";
    encoder.vocabulary_size = options_.source_words;
    encoder.embedding = Embedding("source", options_.source_words, options_.source_width);
    encoder.window = options_.window;
    encoder.input = Quantiser(0.75f);
    uint32_t inputs = options_.source_width;
    for (uint32_t i = 0; i < options_.layers; ++i) {
      const std::string name = "encoder." + std::to_string(i);
      const float limit = 1 + static_cast<float>(i) / 8;
      encoder.forward.push_back(Layer(name + ".forward", inputs, units, limit));
      if (both) encoder.backward.push_back(Layer(name + ".backward", inputs, units, limit));
      inputs = options_.units;
    }
    if (!options_.bridge) return encoder;
    const uint32_t stacked = units * options_.layers;
    encoder.bridge =
        EncoderBridge{Matrix("bridge.hidden.weight", stacked, stacked),
                      Vector("bridge.hidden.bias", stacked), std::nullopt, std::nullopt};
    if (options_.cell != RecurrentCell::kLstm) return encoder;
    encoder.bridge->cell_weight = Matrix("bridge.cell.weight", stacked, stacked);
    encoder.bridge->cell_bias = Vector("bridge.cell.bias", stacked);
    return encoder;
  }

  RecurrentDecoder Decoder() {
    RecurrentDecoder decoder;
    decoder.name = "decoder";
    decoder.inputs = options_.target_width;
    decoder.input = Quantiser(1);
    decoder.input_feed = options_.input_feed;
    uint32_t inputs = options_.target_width + (options_.input_feed ? options_.units : 0);
    for (uint32_t i = 0; i < options_.layers; ++i) {
      decoder.layers.push_back(
          Layer("decoder." + std::to_string(i), inputs, options_.units, 0.875f));
      inputs = options_.units;
    }
    if (options_.attention) decoder.attention = Attention(*options_.attention);
    return decoder;
  }

  GlobalAttention Attention(AttentionScore score) {
    const uint32_t n = options_.units;
    GlobalAttention attention{};
    attention.score = score;
    const bool additive = score == AttentionScore::kMlp;
    if (score != AttentionScore::kDot) {
      attention.query_weight = Matrix("attention.query.weight", n, n);
    }
    if (additive) {
      attention.query_bias = Vector("attention.query.bias", n);
      attention.memory_weight = Matrix("attention.memory.weight", n, n);
      attention.score_weight = Matrix("attention.score.weight", 1, n);
      attention.out_bias = Vector("attention.out.bias", n);
    }
    attention.out_weight = Matrix("attention.out.weight", n, 2 * n);
    attention.joined = Quantiser(1);
    attention.output = Quantiser(additive ? 4.0f : 1.0f);
    if (!additive) attention.weights = Quantiser(1);
    if (score == AttentionScore::kGeneral) attention.query = Quantiser(3);
    return attention;
  }

  const TinyRecurrentTranslationOptions& options_;
};

}  // namespace

ModelDraft TinyRecurrentTranslation(const TinyRecurrentTranslationOptions& options) {
  ModelDraft draft;
  RecurrentTranslationBuilder(options, draft).Build();
  return draft;
}

}  // namespace kinglet

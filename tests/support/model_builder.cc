#include "tests/support/model_builder.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <utility>

#include "tests/support/tensor_maker.h"

namespace kinglet {
namespace {

// The value with its low `bits` mantissa bits cleared, like the scales of MicroNet's
// post-processing.
float TruncateMantissa(float value, int bits) {
  return std::bit_cast<float>(std::bit_cast<uint32_t>(value) & (~uint32_t{0} << bits));
}

class PlainModelBuilder : TensorMaker {
 public:
  PlainModelBuilder(const TinyOptions& options, ModelDraft& draft)
      : TensorMaker(draft, options.seed),
        options_(options),
        bits_(options.quantised && options.bits == 0 ? 9 : options.bits) {}

  void Build() {
    ModelDescription& description = draft_.description;
    description.provenance = {"kinglet tests", "neurips-micronet", "model-1.pth",
                              std::string(32, '0'), "bits " + std::to_string(bits_)};
    description.vocabulary_size = options_.vocabulary_size;
    AddEmbeddingAndSoftmax();
    if (options_.cache_capacity > 0) {
      description.blocks.push_back(NeuralCache{"cache", options_.cache_capacity, 0.25, 0.125});
    }
    if (options_.vocabulary) draft_.vocabulary = TinyVocabulary(options_.vocabulary_size);
  }

 private:
  // A matrix or bias that quantisation and pruning apply to.
  TensorId AddWeight(const std::string& name, Shape shape, float limit, bool prunable) {
    const uint64_t rows = Rows(shape), cols = Cols(shape);
    const bool pruned = options_.pruned && prunable;
    const bool matrix = shape.size() == 2;
    std::vector<bool> kept(rows * cols, true);
    if (pruned) {
      for (uint64_t i = 0; i < kept.size(); ++i) {
        const bool zero_row = matrix && rows > 4 && i / cols == rows - 1;
        kept[i] = !zero_row && random_.Below(10) >= 6;
      }
    }
    if (bits_ == 0) {
      DenseF32 dense;
      for (uint64_t i = 0; i < rows * cols; ++i) {
        const float value = limit * random_.Signed();
        dense.values.push_back(kept[i] ? value : 0.0f);
      }
      return Add({name, std::move(shape), std::move(dense), pruned});
    }
    Quantised quantised;
    quantised.bits = bits_;
    quantised.rule = matrix ? ScaleRule::kMultiplyPerRow : ScaleRule::kDividePerTensor;
    const int largest = (1 << (bits_ - 1)) - 1;
    for (uint64_t i = 0; i < rows * cols; ++i) {
      const int code = static_cast<int>(random_.Below(2 * largest + 2)) - largest - 1;
      quantised.codes.push_back(static_cast<int16_t>(kept[i] ? code : 0));
    }
    if (matrix) {
      for (uint64_t row = 0; row < rows; ++row) {
        const float row_limit = limit * (1.0f + 0.5f * random_.Signed());
        const bool zero = std::all_of(quantised.codes.begin() + row * cols,
                                      quantised.codes.begin() + (row + 1) * cols,
                                      [](int16_t code) { return code == 0; });
        quantised.scales.push_back(
            zero ? 0.0f : TruncateMantissa(row_limit / static_cast<float>(largest), bits_));
      }
    } else {
      quantised.scales.push_back(static_cast<float>(largest) / limit);
    }
    return Add({name, std::move(shape), std::move(quantised), pruned});
  }

  TensorId AddMatrix(const std::string& name, uint32_t rows, uint32_t cols, bool prunable) {
    const float limit = std::sqrt(3.0f / static_cast<float>(cols));
    return AddWeight(name, {rows, cols}, limit, prunable);
  }

  TensorId AddBias(const std::string& name, uint32_t size, bool prunable) {
    return AddWeight(name, {size}, 0.5f, prunable);
  }

  ActivationQuantiser MakeQuantiser(float max_abs) const {
    const auto largest = static_cast<float>((1 << (bits_ - 1)) - 1);
    return {max_abs, TruncateMantissa(max_abs / largest, bits_)};
  }

  TransformerLayer MakeLayer(const std::string& name) {
    const uint32_t d = options_.width;
    const uint32_t attended = options_.heads * options_.value_size;
    const uint32_t qkv_rows = options_.heads * (2 * options_.key_size + options_.value_size);
    TransformerLayer layer{};
    layer.positions = Floats(name + "pos_emb", {options_.key_size, options_.window}, 0.0f, 1.0f);
    layer.attention_norm_gain = Floats(name + "ln1.weight", {d}, 1.0f, 0.25f);
    layer.attention_norm_bias = Floats(name + "ln1.bias", {d}, 0.0f, 0.25f);
    layer.qkv_weight = AddMatrix(name + "qkv.weight", qkv_rows, d, true);
    layer.qkv_bias = AddBias(name + "qkv.bias", qkv_rows, false);
    layer.out_weight = AddMatrix(name + "out.weight", d, attended, true);
    layer.inner_norm_gain = Floats(name + "ln2.weight", {d}, 1.0f, 0.25f);
    layer.inner_norm_bias = Floats(name + "ln2.bias", {d}, 0.0f, 0.25f);
    layer.inner_weight = AddMatrix(name + "fc.0.weight", options_.inner, d, true);
    layer.inner_bias = AddBias(name + "fc.0.bias", options_.inner, false);
    layer.outer_weight = AddMatrix(name + "fc.3.weight", d, options_.inner, true);
    layer.outer_bias = AddBias(name + "fc.3.bias", d, false);
    if (options_.quantised) {
      layer.quantisers = TransformerLayerQuantisers{
          MakeQuantiser(3.0f), MakeQuantiser(4.0f), MakeQuantiser(1.0f), MakeQuantiser(3.0f),
          MakeQuantiser(3.0f), MakeQuantiser(4.0f), MakeQuantiser(2.5f)};
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
    decoder.start = options_.quantised ? StreamStart::kZeros : StreamStart::kMasked;
    decoder.norm_order = NormOrder::kPre;
    decoder.epsilon = 1e-5;
    decoder.positions = SlotPositions{};
    for (uint32_t i = 0; i < options_.layers; ++i) {
      decoder.layers.push_back(MakeLayer("layers." + std::to_string(i) + "."));
    }
    if (options_.quantised) decoder.output = MakeQuantiser(6.0f);
    return decoder;
  }

  void AddEmbeddingAndSoftmax() {
    AdaptiveEmbedding embedding;
    embedding.name = "embed";
    embedding.width = options_.width;
    embedding.scale = std::sqrt(static_cast<double>(options_.width));
    AdaptiveSoftmax softmax;
    softmax.name = "loss";
    softmax.width = options_.width;
    softmax.tail_input = options_.quantised ? TailInput::kFixedPoint15 : TailInput::kAsIs;

    const auto bins = static_cast<uint32_t>(options_.bins);
    uint32_t first = 0;
    for (uint32_t i = 0; i < bins; ++i) {
      // Later bins are larger; the last one takes the remaining words.
      const uint32_t share = options_.vocabulary_size * (i + 1) / (bins * (bins + 1) / 2);
      const uint32_t size = i + 1 == bins ? options_.vocabulary_size - first : share;
      const uint32_t cols = options_.width >> i;
      const std::string number = std::to_string(i);
      const TensorId table = AddMatrix("loss.layers." + number + ".weight", size, cols, true);
      const TensorId bias = AddBias("loss.layers." + number + ".bias", size, i > 0);
      EmbeddingBin bin{first, size, table, std::nullopt};
      if (i == 0) {
        softmax.head_size = size;
        softmax.head_table = table;
        softmax.head_bias = bias;
      } else {
        const std::string projection = "projections." + std::to_string(i - 1) + ".weight";
        bin.projection = AddMatrix("embed." + projection, options_.width, cols, i == 1);
        const TensorId inward = AddMatrix("loss." + projection, cols, options_.width, i == 1);
        softmax.tails.push_back({first, size, bins - 1 - i, inward, table, bias});
      }
      embedding.bins.push_back(bin);
      first += size;
    }
    if (bins > 1) {
      softmax.cluster_weight = AddMatrix("loss.clusters.weight", bins - 1, options_.width, false);
      softmax.cluster_bias = AddBias("loss.clusters.bias", bins - 1, false);
    }
    draft_.description.blocks.push_back(std::move(embedding));
    draft_.description.blocks.push_back(MakeDecoder());
    draft_.description.blocks.push_back(std::move(softmax));
  }

  const TinyOptions options_;
  const int bits_;
};

}  // namespace

ModelDraft TinyMicronet(const TinyOptions& options) {
  ModelDraft draft;
  PlainModelBuilder(options, draft).Build();
  return draft;
}

}  // namespace kinglet

#include "tests/support/recurrent_builder.h"

#include <cmath>
#include <string>
#include <utility>

#include "tests/support/tensor_maker.h"

namespace kinglet {
namespace {

class RecurrentModelBuilder : TensorMaker {
 public:
  RecurrentModelBuilder(const TinyRecurrentOptions& options, ModelDraft& draft)
      : TensorMaker(draft, options.seed), options_(options) {}

  void Build() {
    ModelDescription& description = draft_.description;
    description.provenance = {"kinglet tests", "awd-lstm", "model.pt", std::string(32, '0'), ""};
    description.vocabulary_size = options_.vocabulary_size;
    AdaptiveEmbedding embedding;
    embedding.name = "encoder";
    embedding.width = options_.inputs;
    embedding.scale = 1;
    embedding.bins.push_back(
        {0, options_.vocabulary_size,
         Table("encoder.weight", options_.vocabulary_size, options_.inputs, options_.input_coding),
         std::nullopt});
    description.blocks.emplace_back(std::move(embedding));
    description.blocks.emplace_back(MakeDecoder());
    description.blocks.emplace_back(MakeSoftmax());
    if (options_.cache_capacity > 0) {
      description.blocks.emplace_back(
          NeuralCache{"cache", options_.cache_capacity, 0.25, 0.125, options_.cache_start});
    }
    if (options_.vocabulary) draft_.vocabulary = TinyVocabulary(options_.vocabulary_size);
  }

 private:
  TensorId Matrix(const std::string& name, uint32_t rows, uint32_t cols) {
    return TensorMaker::Matrix(name, rows, cols, options_.bits,
                               std::sqrt(3.0f / static_cast<float>(cols)));
  }

  TensorId Table(const std::string& name, uint32_t rows, uint32_t cols,
                 const std::optional<TinyCoding>& coding) {
    if (!coding) return Matrix(name, rows, cols);
    Coded coded;
    coded.scheme.positions = coding->positions;
    coded.scheme.pools = coding->pools;
    coded.scheme.codebook =
        Matrix(name + ".codebook", static_cast<uint32_t>(coded.scheme.PoolTotal()),
               cols / coding->positions);
    std::vector<uint32_t> codes;
    codes.reserve(uint64_t{rows} * coding->positions);
    for (uint32_t row = 0; row < rows; ++row) {
      for (uint32_t j = 0; j < coding->positions; ++j) {
        codes.push_back(random_.Below(coded.scheme.PoolSize(j)));
      }
    }
    coded.codes = std::move(codes);
    return Add({name, {rows, cols}, std::move(coded), false});
  }

  TensorId Vector(const std::string& name, uint32_t size) { return Floats(name, {size}, 0, 0.5f); }

  std::optional<ActivationQuantiser> Quantiser(float max_abs) const {
    if (!options_.quantised) return std::nullopt;
    return ActivationQuantiser{max_abs,
                               max_abs / static_cast<float>((1 << (options_.bits - 1)) - 1)};
  }

  RecurrentDecoder MakeDecoder() {
    RecurrentDecoder decoder;
    decoder.name = "rnn";
    decoder.inputs = options_.inputs;
    decoder.input = Quantiser(1.5f);
    uint32_t inputs = options_.inputs;
    for (size_t i = 0; i < options_.cells.size(); ++i) {
      const std::string name = "rnns." + std::to_string(i) + ".";
      RecurrentLayer layer{};
      layer.cell = options_.cells[i];
      layer.units = options_.units + static_cast<uint32_t>(i) * options_.more_units;
      const uint32_t rows = GatesOf(layer.cell) * layer.units;
      const bool qrnn = layer.cell == RecurrentCell::kQrnn;
      layer.input_weight = Matrix(name + "weight_ih", rows, inputs);
      layer.input_bias = Vector(name + "bias_ih", rows);
      if (!qrnn || i == 0) {
        const bool projected = options_.projected > 0 && layer.cell == RecurrentCell::kLstm;
        if (projected) {
          layer.projection = {options_.projected,
                              Matrix(name + "weight_hr", options_.projected, layer.units),
                              Quantiser(1.0f)};
        }
        layer.recurrent_weight = Matrix(name + "weight_hh", rows, qrnn ? inputs : layer.Outputs());
      }
      if (!qrnn) layer.recurrent_bias = Vector(name + "bias_hh", rows);
      layer.output = Quantiser(1.0f);
      decoder.layers.push_back(layer);
      inputs = layer.Outputs();
    }
    width_ = inputs;
    return decoder;
  }

  AdaptiveSoftmax MakeSoftmax() {
    AdaptiveSoftmax softmax{};
    softmax.name = "decoder";
    softmax.width = width_;
    const uint32_t parts = options_.tails + 1;
    uint32_t first = 0;
    for (uint32_t i = 0; i < parts; ++i) {
      const uint32_t size =
          i + 1 == parts ? options_.vocabulary_size - first : options_.vocabulary_size / parts;
      const std::string name = "decoder." + std::to_string(i);
      const TensorId table =
          Table(name + ".weight", size, width_, i == 0 ? options_.head_coding : std::nullopt);
      const TensorId bias = Vector(name + ".bias", size);
      if (i == 0) {
        softmax.head_size = size;
        softmax.head_table = table;
        softmax.head_bias = bias;
      } else {
        softmax.tails.push_back({first, size, options_.tails - i, std::nullopt, table, bias});
      }
      first += size;
    }
    if (options_.tails > 0) {
      softmax.cluster_weight = Matrix("tail_vectors", options_.tails, width_);
      softmax.cluster_bias = Vector("tail_bias", options_.tails);
    }
    return softmax;
  }

  const TinyRecurrentOptions options_;
  uint32_t width_ = 0;
};

}  // namespace

ModelDraft TinyRecurrent(const TinyRecurrentOptions& options) {
  ModelDraft draft;
  RecurrentModelBuilder(options, draft).Build();
  return draft;
}

}  // namespace kinglet

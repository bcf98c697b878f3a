#include "tests/support/recurrent_builder.h"

#include <cmath>
#include <string>
#include <utility>

#include "tests/support/model_builder.h"

namespace kinglet {
namespace {

class RecurrentModelBuilder {
 public:
  explicit RecurrentModelBuilder(const TinyRecurrentOptions& options)
      : options_(options), random_(options.seed) {}

  ModelDraft Build() {
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
    if (!options_.vocabulary) return std::move(draft_);
    draft_.vocabulary = {"the", "<eos>", "<unk>"};
    for (uint32_t id = 3; id < options_.vocabulary_size; ++id) {
      draft_.vocabulary.emplace_back("w").append(std::to_string(id));
    }
    return std::move(draft_);
  }

 private:
  TensorId Add(EncodedTensor tensor) {
    draft_.tensors.push_back(std::move(tensor));
    return static_cast<TensorId>(draft_.tensors.size() - 1);
  }

  TensorId Matrix(const std::string& name, uint32_t rows, uint32_t cols) {
    const uint64_t count = uint64_t{rows} * cols;
    const float limit = std::sqrt(3.0f / static_cast<float>(cols));
    if (options_.bits == 0) {
      DenseF32 dense;
      for (uint64_t i = 0; i < count; ++i) dense.values.push_back(limit * random_.Signed());
      return Add({name, {rows, cols}, std::move(dense), false});
    }
    Quantised quantised;
    quantised.bits = options_.bits;
    const int largest = (1 << (options_.bits - 1)) - 1;
    for (uint64_t i = 0; i < count; ++i) {
      const auto code = static_cast<int>(random_.Below(2 * largest + 1));
      quantised.codes.push_back(static_cast<int16_t>(code - largest));
    }
    for (uint32_t row = 0; row < rows; ++row) {
      quantised.scales.push_back(limit * (1 + 0.5f * random_.Signed()) /
                                 static_cast<float>(largest));
    }
    return Add({name, {rows, cols}, std::move(quantised), false});
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

  TensorId Vector(const std::string& name, uint32_t size) {
    DenseF32 dense;
    for (uint32_t i = 0; i < size; ++i) dense.values.push_back(0.5f * random_.Signed());
    return Add({name, {size}, std::move(dense), false});
  }

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
        layer.recurrent_weight = Matrix(name + "weight_hh", rows, qrnn ? inputs : layer.units);
      }
      if (!qrnn) layer.recurrent_bias = Vector(name + "bias_hh", rows);
      layer.output = Quantiser(1.0f);
      decoder.layers.push_back(layer);
      inputs = layer.units;
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
  TestRandom random_;
  ModelDraft draft_;
  uint32_t width_ = 0;
};

}  // namespace

ModelDraft TinyRecurrent(const TinyRecurrentOptions& options) {
  return RecurrentModelBuilder(options).Build();
}

}  // namespace kinglet

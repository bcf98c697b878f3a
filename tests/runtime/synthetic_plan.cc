#include "tests/runtime/synthetic_plan.h"

#include <algorithm>
#include <cmath>

#include "runtime/lower/lower.h"

namespace kinglet {
namespace {

constexpr ActivationQuantiser kQuantiser = {4.0f, 4.0f / 255};

}  // namespace

SyntheticPlan::SyntheticPlan(const SyntheticConfig& config) : config_(config) {
  const uint32_t width = config_.widths.front();
  AdaptiveEmbedding embedding{"embed", width, std::sqrt(width), {}};
  AdaptiveSoftmax softmax{};
  softmax.name = "loss";
  softmax.width = width;
  softmax.tail_input = config_.bits > 0 ? TailInput::kFixedPoint15 : TailInput::kAsIs;
  AddBins(embedding, softmax);
  MicronetDecoder decoder{"layers",
                          width,
                          config_.heads,
                          config_.key_size,
                          config_.value_size,
                          config_.window,
                          StreamStart::kMasked,
                          {},
                          {}};
  for (uint32_t i = 0; i < config_.layers; ++i) {
    decoder.layers.push_back(MakeLayer("layers." + std::to_string(i)));
  }
  if (config_.bits > 0) {
    decoder.start = StreamStart::kZeros;
    decoder.output = kQuantiser;
  }
  ModelDescription description;
  description.vocabulary_size = config_.vocabulary_size;
  description.blocks = {embedding, decoder, softmax};
  if (config_.cache > 0) {
    description.blocks.emplace_back(NeuralCache{"cache", config_.cache, 0.02, 0.15});
  }
  plan_ = *Lower(description, tensors_);
}

TensorId SyntheticPlan::Find(std::string_view name) const {
  const auto found = std::find_if(tensors_.begin(), tensors_.end(),
                                  [&](const TensorView& tensor) { return tensor.name == name; });
  return static_cast<TensorId>(found - tensors_.begin());
}

TensorId SyntheticPlan::AddTensor(const std::string& name, const Shape& shape, bool quantised) {
  TensorView tensor{name, shape, DenseView{FloatType::kF32, {}}, {}};
  if (quantised && config_.bits > 0) {
    tensor.values =
        PackedView{config_.bits,
                   shape.size() == 2 ? ScaleRule::kMultiplyPerRow : ScaleRule::kDividePerTensor,
                   {},
                   {}};
  }
  tensors_.push_back(tensor);
  nonzeros.push_back(Count(shape));
  return static_cast<TensorId>(tensors_.size() - 1);
}

TensorId SyntheticPlan::AddMatrix(const std::string& name, uint64_t rows, uint64_t cols) {
  return AddTensor(name + ".weight", {rows, cols}, true);
}

TensorId SyntheticPlan::AddBias(const std::string& name, uint64_t size) {
  return AddTensor(name + ".bias", {size}, true);
}

MicronetLayer SyntheticPlan::MakeLayer(const std::string& name) {
  const uint64_t width = config_.widths.front();
  const uint64_t qkv_rows = uint64_t{config_.heads} * (2 * config_.key_size + config_.value_size);
  MicronetLayer layer{};
  layer.positions = AddTensor(name + ".pos_emb", {config_.key_size, config_.window}, false);
  layer.norm1_gain = AddTensor(name + ".ln1.weight", {width}, false);
  layer.norm1_bias = AddTensor(name + ".ln1.bias", {width}, false);
  layer.qkv_weight = AddMatrix(name + ".qkv", qkv_rows, width);
  layer.qkv_bias = AddBias(name + ".qkv", qkv_rows);
  layer.out_weight = AddMatrix(name + ".out", width, uint64_t{config_.heads} * config_.value_size);
  layer.norm2_gain = AddTensor(name + ".ln2.weight", {width}, false);
  layer.norm2_bias = AddTensor(name + ".ln2.bias", {width}, false);
  layer.fc0_weight = AddMatrix(name + ".fc.0", config_.inner, width);
  layer.fc0_bias = AddBias(name + ".fc.0", config_.inner);
  layer.fc3_weight = AddMatrix(name + ".fc.3", width, config_.inner);
  layer.fc3_bias = AddBias(name + ".fc.3", width);
  if (config_.bits > 0) {
    layer.quantisers = MicronetLayerQuantisers{kQuantiser, kQuantiser, kQuantiser, kQuantiser,
                                               kQuantiser, kQuantiser, kQuantiser};
  }
  return layer;
}

void SyntheticPlan::AddBins(AdaptiveEmbedding& embedding, AdaptiveSoftmax& softmax) {
  const uint64_t width = config_.widths.front();
  std::vector<uint32_t> ends = config_.cutoffs;
  ends.push_back(config_.vocabulary_size);
  const auto tails = static_cast<uint32_t>(config_.cutoffs.size());
  uint32_t first = 0;
  for (uint32_t i = 0; i <= tails; ++i) {
    const uint32_t size = ends[i] - first, cols = config_.widths[i];
    const std::string number = std::to_string(i);
    const TensorId table = AddMatrix("embed.layers." + number, size, cols);
    const TensorId bias = AddBias("loss.layers." + number, size);
    EmbeddingBin bin{first, size, table, {}};
    if (i == 0) {
      softmax.head_size = size;
      softmax.head_table = table;
      softmax.head_bias = bias;
    } else {
      const std::string projection = "projections." + std::to_string(i - 1);
      bin.projection = AddMatrix("embed." + projection, width, cols);
      softmax.tails.push_back(
          {first, size, tails - i, AddMatrix("loss." + projection, cols, width), table, bias});
    }
    embedding.bins.push_back(bin);
    first = ends[i];
  }
  if (tails > 0) {
    softmax.cluster_weight = AddMatrix("loss.clusters", tails, width);
    softmax.cluster_bias = AddBias("loss.clusters", tails);
  }
}

}  // namespace kinglet

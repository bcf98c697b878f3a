#include "converters/families/neurips_micronet.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "converters/checkpoints/checkpoint_path.h"
#include "converters/checkpoints/config_file.h"
#include "converters/checkpoints/refuse_checkpoint.h"
#include "converters/network/network.h"
#include "format/message_text.h"
#include "kernels/portable_functions.h"

namespace kinglet {
namespace {

class MicronetLoader {
 public:
  MicronetLoader(const MicronetConfig& config, std::span<const CheckpointTensor> weights,
                 NameReport* report)
      : config_(config), order_(weights), network_(weights, report) {}

  Result<LoadedModel> Load() {
    KINGLET_RETURN_IF_ERROR(CheckQuantisers());
    network_.model.bits = config_.bits;
    network_.model.draft.description.vocabulary_size = config_.vocabulary_size;
    DescribeTables();
    AdaptiveEmbedding embedding = DescribeEmbedding();
    TransformerDecoder decoder = DescribeDecoder();
    AdaptiveSoftmax softmax = DescribeSoftmax();
    std::optional<NeuralCache> cache = DescribeCache();
    KINGLET_RETURN_IF_ERROR(network_.CheckNames("a " + std::string(kMicronet.name) +
                                                " network with this configuration"));
    KINGLET_RETURN_IF_ERROR(value_error_);
    KINGLET_RETURN_IF_ERROR(CheckCache(cache));
    std::vector<Block>& blocks = network_.model.draft.description.blocks;
    blocks.emplace_back(std::move(embedding));
    blocks.emplace_back(std::move(decoder));
    blocks.emplace_back(std::move(softmax));
    if (cache) blocks.emplace_back(std::move(*cache));
    KINGLET_RETURN_IF_ERROR(CompareTiedTables());
    return network_.Finish();
  }

 private:
  TensorId Add(const std::string& name, const Shape& shape, Role role) {
    return network_.Add(name, shape, role);
  }

  // A number saved as a tensor of shape () or (1,).
  std::optional<float> Number(const std::string& name, bool required) {
    const CheckpointTensor* found = network_.Find(name);
    const bool listed = found != nullptr && found->shape == Shape{1};
    const CheckpointTensor* tensor = network_.Claim(name, listed ? Shape{1} : Shape{}, required);
    if (tensor == nullptr) return std::nullopt;
    const Result<std::vector<float>> values = ReadFinite(*tensor);
    if (values.ok()) return values->front();
    if (value_error_.ok()) value_error_ = values.status();
    return std::nullopt;
  }

  ActivationQuantiser Quantiser(const std::string& name) {
    const std::optional<float> max_abs = Number(name + ".max_abs", true);
    const std::optional<float> step = Number(name + ".inv_scale", true);
    const auto check = [&](const char* part, const std::optional<float>& value) {
      if (!value || *value > 0 || !value_error_.ok()) return;
      value_error_ =
          RefuseCheckpoint("tensor " + name + part, "a number above 0", NumberText(*value));
    };
    check(".max_abs", max_abs);
    check(".inv_scale", step);
    return {max_abs.value_or(0), step.value_or(0)};
  }

  Status CheckQuantisers() const {
    const bool found = std::any_of(
        order_.begin(), order_.end(),
        [](const CheckpointTensor& tensor) { return tensor.name.ends_with(".max_abs"); });
    if (found == config_.bits.has_value()) return {};
    return RefuseCheckpoint("state dict",
                            config_.bits
                                ? "activation quantisers, as the configuration has bits " +
                                      std::to_string(*config_.bits)
                                : "no activation quantisers, as the configuration has no bits",
                            found ? "tensors named *.max_abs" : "none");
  }

  // One table for input and output in each bin.
  void DescribeTables() {
    for (size_t i = 0; i < config_.bins.size(); ++i) {
      const MicronetBin& bin = config_.bins[i];
      const std::string number = std::to_string(i);
      const std::string outward = "loss.layers." + number + ".weight";
      const std::string inward = "embed.layers." + number + ".weight";
      const Shape shape = {bin.size, bin.width};
      // If a recipe makes the entire input, the input's own table is marked as unused.
      const bool is_unused = network_.IsMade("embed") && network_.Has(outward);
      const bool has_inward = network_.Has(inward) && !is_unused;
      network_.Share(inward, outward);
      const CheckpointTensor* used = network_.Claim(outward, shape);
      const CheckpointTensor* other = has_inward ? network_.Claim(inward, shape) : nullptr;
      const bool made = other != nullptr && !other->made.empty();
      if (made) {
        // A recipe makes the embedding's table; the softmax keeps the checkpoint's.
        inward_tables_.resize(config_.bins.size());
        inward_tables_[i] = network_.Add(inward, shape, Role::kPrunedAlso, other);
        other = nullptr;
      }
      if (used != nullptr && used == other) {
        network_.model.notes.push_back(outward + " is not in the checkpoint; " + inward +
                                       " is used");
        other = nullptr;
      }
      tables_.push_back(
          network_.Add(used != nullptr ? used->name : outward, shape, Role::kPrunedAlso, used));
      if (used != nullptr && other != nullptr) tied_.push_back({used, other});
    }
  }

  AdaptiveEmbedding DescribeEmbedding() {
    AdaptiveEmbedding embedding;
    embedding.name = "embed";
    embedding.width = config_.width;
    embedding.scale = std::sqrt(static_cast<double>(config_.width));
    if (network_.IsMade("embed")) return DescribeMade(std::move(embedding));
    for (size_t i = 0; i < config_.bins.size(); ++i) {
      const MicronetBin& bin = config_.bins[i];
      const bool made = !inward_tables_.empty() && inward_tables_[i];
      EmbeddingBin described{bin.first, bin.size, made ? *inward_tables_[i] : tables_[i],
                             std::nullopt};
      if (i > 0) {
        described.projection =
            Add("embed.projections." + std::to_string(i - 1) + ".weight",
                {config_.width, bin.width}, i == 1 ? Role::kPrunedAlso : Role::kQuantised);
      }
      embedding.bins.push_back(described);
    }
    return embedding;
  }

  // The embedding that a recipe makes, instead of all bins and projections.
  AdaptiveEmbedding DescribeMade(AdaptiveEmbedding embedding) {
    const uint32_t words = config_.bins.back().first + config_.bins.back().size;
    embedding.bins.push_back(
        {0, words, Add("embed", {words, config_.width}, Role::kPrunedAlso), std::nullopt});
    std::vector<std::string> replaced;
    for (size_t i = 0; i < config_.bins.size(); ++i) {
      replaced.push_back("embed.layers." + std::to_string(i) + ".weight");
      replaced.push_back("embed.projections." + std::to_string(i) + ".weight");
    }
    network_.MarkUnused(replaced);
    return embedding;
  }

  TransformerDecoder DescribeDecoder() {
    TransformerDecoder decoder;
    decoder.name = "decoder";
    decoder.width = config_.width;
    decoder.heads = config_.heads;
    decoder.key_size = config_.key_size;
    decoder.value_size = config_.value_size;
    decoder.window = config_.context + 1;
    decoder.start = config_.bits ? StreamStart::kZeros : StreamStart::kMasked;
    decoder.norm_order = NormOrder::kPre;
    decoder.epsilon = 1e-5;
    decoder.positions = SlotPositions{};
    for (uint32_t i = 0; i < config_.layers; ++i) {
      decoder.layers.push_back(DescribeLayer("layers." + std::to_string(i) + "."));
    }
    if (config_.bits) decoder.output = Quantiser("quant");
    return decoder;
  }

  TransformerLayer DescribeLayer(const std::string& prefix) {
    const uint64_t d = config_.width, inner = config_.inner;
    const uint64_t attended = uint64_t{config_.heads} * config_.value_size;
    const uint64_t qkv = attended + uint64_t{config_.heads} * config_.key_size * 2;
    const auto add = [&](const char* name, const Shape& shape, Role role) {
      return Add(prefix + name, shape, role);
    };
    TransformerLayer layer{};
    layer.positions =
        add("pos_emb", {config_.key_size, uint64_t{config_.context} + 1}, Role::kKept);
    layer.attention_norm_gain = add("ln1.weight", {d}, Role::kKept);
    layer.attention_norm_bias = add("ln1.bias", {d}, Role::kKept);
    layer.qkv_weight = add("qkv.weight", {qkv, d}, Role::kPrunedAlso);
    layer.qkv_bias = add("qkv.bias", {qkv}, Role::kQuantised);
    layer.out_weight = add("out.weight", {d, attended}, Role::kPrunedAlso);
    layer.inner_norm_gain = add("ln2.weight", {d}, Role::kKept);
    layer.inner_norm_bias = add("ln2.bias", {d}, Role::kKept);
    layer.inner_weight = add("fc.0.weight", {inner, d}, Role::kPrunedAlso);
    layer.inner_bias = add("fc.0.bias", {inner}, Role::kQuantised);
    layer.outer_weight = add("fc.3.weight", {d, inner}, Role::kPrunedAlso);
    layer.outer_bias = add("fc.3.bias", {d}, Role::kQuantised);
    if (config_.bits) {
      layer.quantisers = TransformerLayerQuantisers{
          Quantiser(prefix + "quant_ln1"),  Quantiser(prefix + "quant_qkv"),
          Quantiser(prefix + "quant_attn"), Quantiser(prefix + "quant_attnv"),
          Quantiser(prefix + "quant_ln2"),  Quantiser(prefix + "fc.1"),
          Quantiser(prefix + "fc.4"),
      };
    }
    return layer;
  }

  AdaptiveSoftmax DescribeSoftmax() {
    const std::string layers = "loss.layers.";
    const uint64_t tails = config_.bins.size() - 1;
    const Shape cluster_shape = {tails, config_.width};
    AdaptiveSoftmax softmax{};
    softmax.name = "loss";
    softmax.width = config_.width;
    softmax.head_size = config_.bins[0].size;
    softmax.head_table = tables_[0];
    softmax.head_bias = Add(layers + "0.bias", {config_.bins[0].size}, Role::kQuantised);
    softmax.tail_input = config_.bits ? TailInput::kFixedPoint15 : TailInput::kAsIs;
    if (tails > 0) {
      softmax.cluster_weight = Add("loss.clusters.weight", cluster_shape, Role::kQuantised);
      softmax.cluster_bias = Add("loss.clusters.bias", {tails}, Role::kQuantised);
    } else {
      // The framework saves a matrix without rows.
      network_.Claim("loss.clusters.weight", cluster_shape, false);
      network_.Claim("loss.clusters.bias", {tails}, false);
    }
    for (size_t i = 0; i < tails; ++i) {
      const MicronetBin& bin = config_.bins[i + 1];
      SoftmaxTail tail{};
      tail.first = bin.first;
      tail.size = bin.size;
      // The original reads tail i's cluster logit at -(i + 1), from the end of the head's logits.
      tail.cluster_row = static_cast<uint32_t>(tails - 1 - i);
      tail.projection =
          Add("loss.projections." + std::to_string(i) + ".weight", {bin.width, config_.width},
              i == 0 ? Role::kPrunedAlso : Role::kQuantised);
      tail.table = tables_[i + 1];
      tail.bias = Add(layers + std::to_string(i + 1) + ".bias", {bin.size}, Role::kPrunedAlso);
      softmax.tails.push_back(tail);
    }
    return softmax;
  }

  // A number of the cache: the trained parameter if it counts, otherwise the fixed one.
  std::optional<double> CacheNumber(const MicronetCacheNumber& number, const std::string& parameter,
                                    double (*activation)(double)) {
    const bool needed = number.trained && !number.fixed;
    const std::optional<float> trained = number.trained ? Number(parameter, needed) : std::nullopt;
    if (trained) return activation(static_cast<double>(*trained));
    return number.fixed;
  }

  std::optional<NeuralCache> DescribeCache() {
    const std::string theta = "loss.cache_theta_inv_softplus";
    const std::string lambda = "loss.cache_lambda_inv_sigmoid";
    std::optional<NeuralCache> cache;
    if (config_.cache) {
      const auto softplus = [](double x) { return x > 30 ? x : portable::Log1p(portable::Exp(x)); };
      cache =
          NeuralCache{"cache", config_.cache->capacity,
                      CacheNumber(config_.cache->theta, theta, softplus).value_or(0),
                      CacheNumber(config_.cache->lambda, lambda, portable::Sigmoid).value_or(0)};
    }
    // The state dict may also have trained parameters that a search file or `use_cache: false`
    // overrules.
    for (const std::string& name : {theta, lambda}) {
      if (config_.trains_cache && network_.Has(name) && !network_.Claimed(name)) {
        network_.ClaimUnshaped(name);
        network_.model.notes.push_back(name + " is not used: the configuration overrules it");
      }
    }
    return cache;
  }

  static Status CheckCache(const std::optional<NeuralCache>& cache) {
    if (!cache) return {};
    if (!std::isfinite(cache->theta) || cache->theta <= 0) {
      return RefuseCheckpoint("cache theta", "a number above 0", NumberText(cache->theta));
    }
    if (!(cache->lambda > 0 && cache->lambda < 1)) {
      return RefuseCheckpoint("cache lambda", "a number between 0 and 1",
                              NumberText(cache->lambda));
    }
    return {};
  }

  // If the checkpoint stores a table twice with different values, the user gets a note.
  Status CompareTiedTables() {
    for (const TiedTable& tied : tied_) {
      KINGLET_ASSIGN_OR_RETURN(const bool same, SameParameter(*tied.used, *tied.other));
      if (same) continue;
      KINGLET_ASSIGN_OR_RETURN(const std::vector<float> other, ReadFinite(*tied.other));
      KINGLET_ASSIGN_OR_RETURN(const std::vector<float> values, ReadFinite(*tied.used));
      double largest = 0;
      for (size_t i = 0; i < other.size(); ++i) {
        largest = std::max(largest, std::fabs(double{other[i]} - double{values[i]}));
      }
      if (largest == 0) continue;
      network_.model.notes.push_back(tied.other->name + " differs from " + tied.used->name +
                                     " by up to " + NumberText(largest) +
                                     "; the latter is used for input and output");
    }
    return {};
  }

  struct TiedTable {
    const CheckpointTensor *used, *other;
  };

  const MicronetConfig& config_;
  std::span<const CheckpointTensor> order_;
  Network network_;
  Status value_error_;            // of the first value that cannot be used
  std::vector<TensorId> tables_;  // by bin
  // By bin, the embedding's tables that a recipe makes; empty if it makes none.
  std::vector<std::optional<TensorId>> inward_tables_;
  std::vector<TiedTable> tied_;
};

}  // namespace

Result<LoadedModel> MicronetDraft(const MicronetConfig& config,
                                  std::span<const CheckpointTensor> weights, NameReport* report) {
  return MicronetLoader(config, weights, report).Load();
}

namespace {

// MicronetDraft with the configuration of the given file, or of config.yaml next to the checkpoint
// or one folder up.
Result<LoadedModel> LoadMicronet(const FamilyInput& input) {
  std::string path = input.config;
  if (path.empty()) {
    KINGLET_ASSIGN_OR_RETURN(path, FindConfig(input.checkpoint, "config.yaml"));
  }
  KINGLET_ASSIGN_OR_RETURN(const ConfigFile file, ConfigFile::Read(path));
  KINGLET_ASSIGN_OR_RETURN(const MicronetConfig config,
                           ReadMicronetConfig(file, input.step, input.ignored));
  return MicronetDraft(config, input.weights, input.report);
}

}  // namespace

constexpr Family kMicronet = {
    .name = "neurips-micronet",
    .marks = "loss.layers.0.weight|embed.layers.0.weight layers.*.qkv.weight",
    .load = LoadMicronet,
    .options = MicronetOptions,
};

}  // namespace kinglet

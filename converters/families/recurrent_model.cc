#include "converters/families/recurrent_model.h"

#include <utility>

#include "converters/checkpoints/refuse_checkpoint.h"
#include "converters/network/network.h"
#include "format/limits.h"

namespace kinglet {
namespace {

class RecurrentLoader {
 public:
  RecurrentLoader(const RecurrentNames& names, std::span<const CheckpointTensor> weights,
                  NameReport* report)
      : names_(names), network_(weights, report), layers_(network_, names.cell) {}

  // The vocabulary's size and the first layer's inputs follow from the encoder, a layer's units
  // from its recurrent weight. Sizes that follow from a faulty tensor are unknown and not checked.
  Result<LoadedModel> Load() {
    ClaimEncoder();
    for (const RecurrentLayerNames& layer : names_.layers) layers_.Claim(layer);
    ClaimDense();
    ClaimSoftmax();
    KINGLET_RETURN_IF_ERROR(network_.CheckNames(names_.network));
    KINGLET_RETURN_IF_ERROR(CheckSizes());
    KINGLET_RETURN_IF_ERROR(CheckStated());
    KINGLET_RETURN_IF_ERROR(CheckCopy());
    if (encoder_ != nullptr) {
      KINGLET_ASSIGN_OR_RETURN(tied_, network_.Tie(*encoder_, *decoder_, names_.tied_by));
    }
    network_.model.draft.description.vocabulary_size = static_cast<uint32_t>(words_);
    Describe();
    return network_.Finish();
  }

 private:
  void ClaimEncoder() {
    if (names_.coded_input) {
      words_ = names_.coded_input->rows;
      inputs_ = Cols(*names_.coded_input);
      layers_.SetInputs(inputs_);
      return;
    }
    // The module's name means its only tensor.
    const std::string module = names_.embedding.substr(0, names_.embedding.rfind('.'));
    const bool replaced = network_.IsMade(module);
    if (!replaced && !network_.Has(names_.embedding)) ShareTables();
    encoder_ = network_.ClaimUnshaped(replaced ? module : names_.embedding);
    if (replaced) network_.MarkUnused({names_.embedding, names_.embedding_copy});
    if (encoder_ == nullptr) return;
    if (encoder_->shape.size() != 2 || encoder_->shape[0] == 0 || encoder_->shape[1] == 0) {
      network_.NoteMisshaped(*encoder_, "[words, width]");
      return;
    }
    if (!replaced && !names_.embedding_copy.empty()) {
      embedding_copy_ = network_.Claim(names_.embedding_copy, encoder_->shape, false);
    }
    words_ = encoder_->shape[0];
    inputs_ = encoder_->shape[1];
    layers_.SetInputs(inputs_);
  }

  // A file may store a tied table once. A softmax without its bias is no tied one: it was lost.
  void ShareTables() {
    const bool ties = !names_.tied_by.empty() || names_.ties;
    if (ties && network_.Has(names_.softmax_bias)) {
      const bool has_softmax = network_.Has(names_.softmax_weight);
      const bool is_stated = !names_.tied_by.empty();
      if (!network_.Share(names_.embedding, names_.softmax_weight, is_stated) || is_stated) return;
      network_.model.notes.push_back((has_softmax ? names_.embedding : names_.softmax_weight) +
                                     " is not in the checkpoint; " +
                                     (has_softmax ? names_.softmax_weight : names_.embedding) +
                                     " is used, as the framework ties both by default");
    } else if (!names_.to_tie.empty()) {
      network_.MayShare(names_.embedding, names_.softmax_weight, names_.to_tie);
    }
  }

  void ClaimDense() {
    width_ = layers_.width();
    for (const DenseLayerNames& names : names_.dense) {
      Dense layer;
      layer.weight = network_.ClaimUnshaped(names.weight);
      if (layer.weight != nullptr) {
        const std::vector<uint64_t>& shape = layer.weight->shape;
        if (shape.size() != 2 || shape[0] == 0 || (width_ > 0 && shape[1] != width_)) {
          network_.NoteMisshaped(*layer.weight, "[n, " + std::to_string(width_) + "]");
          width_ = 0;
        } else {
          width_ = shape[0];
        }
      }
      if (layer.weight == nullptr) width_ = 0;
      layer.bias = network_.Claim(names.bias, {width_});
      if (!names.norm_gain.empty()) {
        layer.norm_gain = network_.Claim(names.norm_gain, {width_});
        layer.norm_bias = network_.Claim(names.norm_bias, {width_});
      }
      dense_.push_back(layer);
    }
  }

  void ClaimSoftmax() {
    const uint64_t width = width_;
    if (width == inputs_) ShareTables();
    decoder_ = network_.Claim(names_.softmax_weight, {words_, width});
    decoder_bias_ = network_.Claim(names_.softmax_bias, {words_});
    const uint64_t tails = names_.splits.size();
    if (tails == 0) return;
    tail_vectors_ = network_.Claim("criterion.tail_vectors", {tails, width});
    tail_bias_ = network_.Claim("criterion.tail_bias", {tails});
  }

  Status CheckSizes() const {
    if (words_ > kMaxDimension) {
      return RefuseCheckpoint("tensor " + names_.embedding,
                              "at most " + std::to_string(kMaxDimension) + " words",
                              std::to_string(words_));
    }
    uint64_t before = 0;
    for (const uint64_t split : names_.splits) {
      if (split <= before || split >= words_) {
        return RefuseCheckpoint("splits", "ascending words below " + std::to_string(words_),
                                std::to_string(split));
      }
      before = split;
    }
    return {};
  }

  // The sizes of the tensors that an option states; the option is right if all of them equal it.
  std::vector<uint64_t> SizesOf(StatedSize::What what) const {
    std::vector<uint64_t> sizes;
    switch (what) {
      case StatedSize::kWords:
        return {words_};
      case StatedSize::kInputs:
        return {inputs_};
      case StatedSize::kLayers:
        return {names_.layers.size()};
      case StatedSize::kUnits:
        return layers_.Units();
      case StatedSize::kDenseUnits:
        for (const Dense& layer : dense_) sizes.push_back(layer.weight->shape[0]);
        return sizes;
    }
    return sizes;
  }

  Status CheckCopy() {
    if (embedding_copy_ == nullptr) return {};
    KINGLET_ASSIGN_OR_RETURN(const bool same, network_.Tie(*encoder_, *embedding_copy_));
    if (same) return {};
    return RefuseCheckpoint("tensor " + embedding_copy_->name,
                            "the values of " + encoder_->name + ", which is the same parameter",
                            "other values (remove the one that is not the trained table)");
  }

  Status CheckStated() const {
    for (const StatedSize& stated : names_.stated) {
      for (const uint64_t size : SizesOf(stated.what)) {
        if (std::to_string(size) == std::to_string(stated.value)) continue;
        return Status::Refusal(KINGLET_INVALID_CHECKPOINT, names_.configuration, stated.option,
                               std::to_string(size) + ", as the checkpoint has",
                               std::to_string(stated.value) + " (use this checkpoint's own file)");
      }
    }
    return {};
  }

  void Describe() {
    std::vector<Block>& blocks = network_.model.draft.description.blocks;
    AdaptiveEmbedding embedding;
    embedding.name = "encoder";
    embedding.width = static_cast<uint32_t>(inputs_);
    embedding.scale = 1;
    AdaptiveSoftmax softmax = DescribeSoftmax(embedding);
    if (!tied_) {
      const TensorId table =
          names_.coded_input
              ? network_.AddCoded(names_.embedding, *names_.coded_input)
              : network_.Add(names_.embedding, encoder_->shape, Role::kPrunedAlso, encoder_);
      embedding.bins.push_back({0, static_cast<uint32_t>(words_), table, std::nullopt});
    }
    RecurrentDecoder decoder = layers_.Describe();
    decoder.name = "rnn";
    blocks.emplace_back(std::move(embedding));
    blocks.emplace_back(std::move(decoder));
    if (!dense_.empty()) blocks.emplace_back(DescribeDense());
    blocks.emplace_back(std::move(softmax));
  }

  DenseLayers DescribeDense() {
    DenseLayers dense{"dense", DensePlace::kOutput};
    for (size_t i = 0; i < dense_.size(); ++i) {
      const Dense& from = dense_[i];
      DenseLayer layer{network_.AddWhole(*from.weight, Role::kPrunedAlso),
                       network_.AddWhole(*from.bias, Role::kQuantised)};
      if (from.norm_gain != nullptr) {
        layer.norm = DenseNorm::kLayer;
        layer.norm_gain = network_.AddWhole(*from.norm_gain, Role::kKept);
        layer.norm_bias = network_.AddWhole(*from.norm_bias, Role::kKept);
      }
      layer.activation = names_.dense[i].activation;
      dense.layers.push_back(layer);
    }
    return dense;
  }

  // Part 0 is the head. Also adds the embedding's bins if the tables are tied.
  AdaptiveSoftmax DescribeSoftmax(AdaptiveEmbedding& embedding) {
    AdaptiveSoftmax softmax{};
    softmax.name = "decoder";
    softmax.width = static_cast<uint32_t>(width_);
    std::vector<uint64_t> bounds = {0};
    bounds.insert(bounds.end(), names_.splits.begin(), names_.splits.end());
    bounds.push_back(words_);
    const size_t tails = names_.splits.size();
    for (size_t i = 0; i <= tails; ++i) {
      const auto first = static_cast<uint32_t>(bounds[i]);
      const auto size = static_cast<uint32_t>(bounds[i + 1] - bounds[i]);
      const std::string part = tails == 0 ? "" : "." + std::to_string(i);
      const TensorId table = network_.Add(names_.softmax_weight + part, {size, width_},
                                          Role::kPrunedAlso, decoder_, {first, 0});
      if (tied_) embedding.bins.push_back({first, size, table, std::nullopt});
      tables_.push_back({first, size, table});
    }
    for (size_t i = 0; i <= tails; ++i) {
      const auto& [first, size, table] = tables_[i];
      const std::string part = tails == 0 ? "" : "." + std::to_string(i);
      const TensorId bias = network_.Add(names_.softmax_bias + part, {size}, Role::kQuantised,
                                         decoder_bias_, {0, first});
      if (i == 0) {
        softmax.head_size = size;
        softmax.head_table = table;
        softmax.head_bias = bias;
      } else {
        // The original reads tail i's cluster logit at -i, from the end of the head's logits.
        softmax.tails.push_back(
            {first, size, static_cast<uint32_t>(tails - i), std::nullopt, table, bias});
      }
    }
    if (tails > 0) {
      softmax.cluster_weight = network_.AddWhole(*tail_vectors_, Role::kQuantised);
      softmax.cluster_bias = network_.AddWhole(*tail_bias_, Role::kQuantised);
    }
    return softmax;
  }

  struct Table {
    uint32_t first, size;
    TensorId table;
  };

  // A dense layer's tensors; nullptr if missing or faulty.
  struct Dense {
    const CheckpointTensor* weight = nullptr;
    const CheckpointTensor* bias = nullptr;
    const CheckpointTensor* norm_gain = nullptr;
    const CheckpointTensor* norm_bias = nullptr;
  };

  const RecurrentNames& names_;
  Network network_;
  RecurrentLayers layers_;
  uint64_t words_ = 0, inputs_ = 0;
  uint64_t width_ = 0;  // of what the softmax reads; 0: unknown
  std::vector<Dense> dense_;
  const CheckpointTensor* encoder_ = nullptr;  // nullptr: a coded table
  const CheckpointTensor* embedding_copy_ = nullptr;
  const CheckpointTensor* decoder_ = nullptr;
  const CheckpointTensor* decoder_bias_ = nullptr;
  const CheckpointTensor* tail_vectors_ = nullptr;
  const CheckpointTensor* tail_bias_ = nullptr;
  std::vector<Table> tables_;  // by bin of the softmax
  bool tied_ = false;
};

}  // namespace

Result<LoadedModel> LoadRecurrent(const RecurrentNames& names,
                                  std::span<const CheckpointTensor> weights, NameReport* report) {
  return RecurrentLoader(names, weights, report).Load();
}

}  // namespace kinglet

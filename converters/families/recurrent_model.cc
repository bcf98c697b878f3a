#include "converters/families/recurrent_model.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "converters/families/draft_builder.h"
#include "format/limits.h"

namespace kinglet {
namespace {

Status Refuse(const std::string& where, const std::string& expected, const std::string& found) {
  return Status::Refusal(KINGLET_INVALID_CHECKPOINT, "checkpoint", where, expected, found);
}

bool IsMatrix(const SourceTensor& tensor) {
  return tensor.shape.size() == 2 && tensor.shape[0] > 0 && tensor.shape[1] > 0;
}

bool SameBits(std::span<const float> a, std::span<const float> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](float x, float y) {
    return std::bit_cast<uint32_t>(x) == std::bit_cast<uint32_t>(y);
  });
}

// A layer's tensors; null where there are none or they are at fault.
struct LayerSources {
  RecurrentCell cell = RecurrentCell::kLstm;
  uint64_t units = 0, inputs = 0;
  bool previous_input = false;  // a QRNN whose window is two tokens
  const SourceTensor* input_weight = nullptr;
  const SourceTensor* input_bias = nullptr;
  const SourceTensor* recurrent_weight = nullptr;
  const SourceTensor* recurrent_bias = nullptr;
};

class RecurrentLoader {
 public:
  RecurrentLoader(const RecurrentNames& names, std::span<const SourceTensor> weights)
      : names_(names), builder_(weights) {}

  // Sizes come from the tensors themselves: the vocabulary and the inputs from the encoder, a
  // layer's units from its recurrent weight. What cannot be known is not checked, because the
  // tensor that would tell it is among the faults.
  Result<LoadedModel> Load() {
    ClaimEncoder();
    for (const RecurrentLayerNames& layer : names_.layers) ClaimLayer(layer);
    ClaimSoftmax();
    KINGLET_RETURN_IF_ERROR(builder_.CheckNames(names_.network));
    KINGLET_RETURN_IF_ERROR(CheckSizes());
    KINGLET_RETURN_IF_ERROR(FindTie());
    builder_.model.draft.description.vocabulary_size = static_cast<uint32_t>(words_);
    builder_.model.cache_start = CacheStart::kPastCapacity;
    Describe();
    KINGLET_RETURN_IF_ERROR(builder_.ReadValues());
    return std::move(builder_.model);
  }

 private:
  void ClaimEncoder() {
    encoder_ = builder_.ClaimUnshaped("encoder.weight");
    if (encoder_ == nullptr) return;
    if (!IsMatrix(*encoder_)) {
      builder_.NoteMisshaped(*encoder_, "[words, width]");
      return;
    }
    words_ = encoder_->shape[0];
    inputs_ = width_ = encoder_->shape[1];
  }

  void ClaimLayer(const RecurrentLayerNames& names) {
    LayerSources layer;
    layer.inputs = width_;
    for (const std::string& leftover : names.leftovers) builder_.ClaimUnshaped(leftover, false);
    if (names_.cell == RecurrentCell::kQrnn) {
      ClaimQrnn(names, layer);
    } else {
      ClaimRecurrent(names, layer);
    }
    width_ = layer.units;
    layers_.push_back(layer);
  }

  // A tensor whose shape is known once `known` is.
  const SourceTensor* Claim(const std::string& name, bool known, const Shape& shape) {
    return known ? builder_.Claim(name, shape) : builder_.ClaimUnshaped(name);
  }

  void ClaimRecurrent(const RecurrentLayerNames& names, LayerSources& layer) {
    layer.recurrent_weight = builder_.ClaimUnshaped(names.recurrent_weight);
    if (layer.recurrent_weight != nullptr) FindCell(layer);
    const uint64_t rows = GatesOf(layer.cell) * layer.units;
    const bool known = layer.units > 0;
    layer.input_weight = Claim(names.input_weight, known && layer.inputs > 0, {rows, layer.inputs});
    layer.input_bias = Claim(names.input_bias, known, {rows});
    if (names.recurrent_bias.empty()) return;
    layer.recurrent_bias = Claim(names.recurrent_bias, known, {rows});
  }

  // Units and, unless the family knows it, the cell, from the recurrent weight [gates * n, n].
  void FindCell(LayerSources& layer) {
    const SourceTensor& weight = *layer.recurrent_weight;
    const auto gates = [&](RecurrentCell cell) {
      return IsMatrix(weight) && weight.shape[1] <= kMaxExtent &&
             weight.shape[0] == GatesOf(cell) * weight.shape[1];
    };
    if (names_.cell) {
      layer.cell = *names_.cell;
    } else {
      layer.cell = gates(RecurrentCell::kGru) ? RecurrentCell::kGru : RecurrentCell::kLstm;
    }
    if (gates(layer.cell)) {
      layer.units = weight.shape[1];
    } else {
      builder_.NoteMisshaped(
          weight, names_.cell ? "[" + std::to_string(GatesOf(layer.cell)) + " n, n] for n units"
                              : "[4 n, n] or [3 n, n] for n units");
    }
  }

  // One weight for the token and the one before, [3 n, inputs] or [3 n, 2 inputs].
  void ClaimQrnn(const RecurrentLayerNames& names, LayerSources& layer) {
    layer.cell = RecurrentCell::kQrnn;
    layer.input_weight = builder_.ClaimUnshaped(names.input_weight);
    if (layer.input_weight != nullptr) {
      const SourceTensor& weight = *layer.input_weight;
      const bool matrix = IsMatrix(weight) && weight.shape[0] % 3 == 0;
      const uint64_t columns = matrix ? weight.shape[1] : 0;
      if (matrix && (layer.inputs == 0 || columns == layer.inputs || columns == 2 * layer.inputs)) {
        layer.units = weight.shape[0] / 3;
        layer.previous_input = columns != layer.inputs;
      } else {
        const std::string inputs = std::to_string(layer.inputs);
        builder_.NoteMisshaped(weight,
                               "[3 n, " + inputs + "] or [3 n, 2 * " + inputs + "] for n units");
      }
    }
    layer.input_bias = Claim(names.input_bias, layer.units > 0, {3 * layer.units});
  }

  void ClaimSoftmax() {
    const bool known = words_ > 0 && width_ > 0;
    decoder_ = Claim("decoder.weight", known, {words_, width_});
    decoder_bias_ = Claim("decoder.bias", words_ > 0, {words_});
    const uint64_t tails = names_.splits.size();
    if (tails == 0) return;
    tail_vectors_ = Claim("criterion.tail_vectors", width_ > 0, {tails, width_});
    tail_bias_ = builder_.Claim("criterion.tail_bias", {tails});
  }

  Status CheckSizes() const {
    if (words_ > kMaxDimension) {
      return Refuse("tensor encoder.weight", "at most " + std::to_string(kMaxDimension) + " words",
                    std::to_string(words_));
    }
    uint64_t before = 0;
    for (const uint64_t split : names_.splits) {
      if (split <= before || split >= words_) {
        return Refuse("splits", "ascending words below " + std::to_string(words_),
                      std::to_string(split));
      }
      before = split;
    }
    return {};
  }

  // Tied tables share a storage in the original; equal values are one parameter whatever they
  // share.
  Status FindTie() {
    if (encoder_->shape != decoder_->shape) return {};
    KINGLET_ASSIGN_OR_RETURN(const std::vector<float> encoder, ReadFinite(*encoder_));
    KINGLET_ASSIGN_OR_RETURN(const std::vector<float> decoder, ReadFinite(*decoder_));
    tied_ = SameBits(encoder, decoder);
    return {};
  }

  void Describe() {
    std::vector<Block>& blocks = builder_.model.draft.description.blocks;
    AdaptiveEmbedding embedding;
    embedding.name = "encoder";
    embedding.width = static_cast<uint32_t>(inputs_);
    embedding.scale = 1;
    AdaptiveSoftmax softmax = DescribeSoftmax(embedding);
    if (!tied_) {
      const TensorId table =
          builder_.Add("encoder.weight", encoder_->shape, Role::kPrunedAlso, encoder_);
      embedding.bins.push_back({0, static_cast<uint32_t>(words_), table, std::nullopt});
    }
    RecurrentDecoder decoder;
    decoder.name = "rnn";
    decoder.inputs = static_cast<uint32_t>(inputs_);
    for (const LayerSources& layer : layers_) decoder.layers.push_back(DescribeLayer(layer));
    blocks.emplace_back(std::move(embedding));
    blocks.emplace_back(std::move(decoder));
    blocks.emplace_back(std::move(softmax));
  }

  TensorId AddWhole(const SourceTensor& tensor, Role role) {
    return builder_.Add(tensor.name, tensor.shape, role, &tensor);
  }

  RecurrentLayer DescribeLayer(const LayerSources& from) {
    RecurrentLayer layer{};
    layer.cell = from.cell;
    layer.units = static_cast<uint32_t>(from.units);
    if (from.previous_input) {
      const Shape half = {from.input_weight->shape[0], from.inputs};
      const std::string& name = from.input_weight->name;
      layer.input_weight =
          builder_.Add(name + ".current", half, Role::kPrunedAlso, from.input_weight);
      layer.recurrent_weight = builder_.Add(name + ".previous", half, Role::kPrunedAlso,
                                            from.input_weight, {0, from.inputs});
    } else {
      layer.input_weight = AddWhole(*from.input_weight, Role::kPrunedAlso);
    }
    layer.input_bias = AddWhole(*from.input_bias, Role::kQuantised);
    if (from.recurrent_weight != nullptr) {
      layer.recurrent_weight = AddWhole(*from.recurrent_weight, Role::kPrunedAlso);
    }
    if (from.recurrent_bias != nullptr) {
      layer.recurrent_bias = AddWhole(*from.recurrent_bias, Role::kQuantised);
    }
    return layer;
  }

  // Bin 0 is the head. Gives the embedding its bins where the tables are tied.
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
      const TensorId table = builder_.Add("decoder.weight" + part, {size, width_},
                                          Role::kPrunedAlso, decoder_, {first, 0});
      if (tied_) embedding.bins.push_back({first, size, table, std::nullopt});
      tables_.push_back({first, size, table});
    }
    for (size_t i = 0; i <= tails; ++i) {
      const auto& [first, size, table] = tables_[i];
      const std::string part = tails == 0 ? "" : "." + std::to_string(i);
      const TensorId bias =
          builder_.Add("decoder.bias" + part, {size}, Role::kQuantised, decoder_bias_, {0, first});
      if (i == 0) {
        softmax.head_size = size;
        softmax.head_table = table;
        softmax.head_bias = bias;
      } else {
        // The original indexes the head's logits with -i, from their end.
        softmax.tails.push_back(
            {first, size, static_cast<uint32_t>(tails - i), std::nullopt, table, bias});
      }
    }
    if (tails > 0) {
      softmax.cluster_weight = AddWhole(*tail_vectors_, Role::kQuantised);
      softmax.cluster_bias = AddWhole(*tail_bias_, Role::kQuantised);
    }
    return softmax;
  }

  struct Table {
    uint32_t first, size;
    TensorId table;
  };

  const RecurrentNames& names_;
  DraftBuilder builder_;
  uint64_t words_ = 0, inputs_ = 0;
  uint64_t width_ = 0;  // of what the layer before leaves; 0 where that cannot be known
  const SourceTensor* encoder_ = nullptr;
  const SourceTensor* decoder_ = nullptr;
  const SourceTensor* decoder_bias_ = nullptr;
  const SourceTensor* tail_vectors_ = nullptr;
  const SourceTensor* tail_bias_ = nullptr;
  std::vector<LayerSources> layers_;
  std::vector<Table> tables_;  // by bin of the softmax
  bool tied_ = false;
};

}  // namespace

Result<LoadedModel> LoadRecurrent(const RecurrentNames& names,
                                  std::span<const SourceTensor> weights) {
  return RecurrentLoader(names, weights).Load();
}

}  // namespace kinglet

// The family `define-awd-lstm`: an AWD-LSTM whose input is a DeFINE unit (Mehta et al. 2020,
// "DeFINE: Deep Factorized Input Token Embeddings for Neural Sequence Modeling") on an adaptive Map
// layer. Framework: pranavajitnair/DeFINE-AWD-LSTM. Files: its state dict. Peculiarities:
//   - the unit's outputs for all words become the embedding's table, unless the user keeps the unit
//   - the output layer shares the Map layer's tables, and the projections of all bands but the
//     first, transposed; words have no biases
//   - there is one softmax over all words: the logit of a band's class is added to those of the
//     band's words, and the classes take no other part (get_logits in its embeddings.py)
#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "converters/checkpoints/checkpoint_tensors.h"
#include "converters/families/claimed_define.h"
#include "converters/families/families.h"
#include "converters/families/recurrent_layers.h"
#include "converters/network/network.h"
#include "format/limits.h"

namespace kinglet {
namespace {

constexpr const char* kReduce = "define.finalProj.weight";

std::string LayerPrefix(size_t index) { return "lstms." + std::to_string(index) + ".module."; }

class Loader {
 public:
  explicit Loader(const FamilyInput& input)
      : network_(input.weights, input.report),
        layers_(network_, RecurrentCell::kLstm),
        cache_rows_(input.define_cache_rows) {}

  Result<LoadedModel> Load() {
    define_ = ClaimDefine(network_);
    if (define_.width > 0) layers_.SetInputs(define_.width);
    ClaimLayers();
    ClaimClasses();
    KINGLET_RETURN_IF_ERROR(
        network_.CheckNames("a " + std::string(kDefineAwdLstm.name) + " network"));
    KINGLET_RETURN_IF_ERROR(CheckUnit(define_.unit));
    KINGLET_RETURN_IF_ERROR(CheckSizes());
    Describe();
    return network_.Finish();
  }

 private:
  void ClaimLayers() {
    size_t index = 0;
    do {
      const std::string module = LayerPrefix(index);
      RecurrentLayerNames names;
      names.input_weight = module + "weight_ih_l0";
      names.input_bias = module + "bias_ih_l0";
      names.recurrent_weight = module + "weight_hh_l0_raw";
      names.recurrent_bias = module + "bias_hh_l0";
      names.leftovers = {module + "weight_hh_l0"};  // a dropped-out copy
      layers_.Claim(names);
      ++index;
    } while (network_.Has(LayerPrefix(index) + "weight_hh_l0_raw"));
  }

  void ClaimClasses() {
    const uint64_t n = define_.unit.map_width;
    const uint64_t tails = define_.bands.empty() ? 0 : define_.bands.size() - 1;
    classes_ = network_.Claim("embeddings.classes.weight", {tails, n});
    class_bias_ = network_.Claim("embeddings.classes.bias", {tails});
  }

  Status CheckSizes() {
    const auto refuse = [](const std::string& where, const std::string& expected, uint64_t found) {
      return Status::Refusal(KINGLET_INVALID_CHECKPOINT, "checkpoint", where, expected,
                             std::to_string(found));
    };
    for (const ClaimedDefine::Band& band : define_.bands) {
      words_ += band.table->shape[0];
      if (words_ > kMaxDimension) {
        return refuse("tensor " + band.table->name,
                      "at most " + std::to_string(kMaxDimension) + " words in all bands", words_);
      }
    }
    if (layers_.width() == define_.unit.map_width) return {};
    return refuse("units of the last layer",
                  std::to_string(define_.unit.map_width) + ", the width of the words' tables",
                  layers_.width());
  }

  void Describe() {
    ModelDescription& description = network_.model.draft.description;
    description.vocabulary_size = static_cast<uint32_t>(words_);
    description.blocks.emplace_back(DescribeEmbedding());
    RecurrentDecoder decoder = layers_.Describe();
    decoder.name = "lstms";
    description.blocks.emplace_back(std::move(decoder));
    description.blocks.emplace_back(DescribeSoftmax());
  }

  AdaptiveEmbedding DescribeEmbedding() {
    AdaptiveEmbedding embedding;
    embedding.name = "define";
    embedding.width = static_cast<uint32_t>(OutputWidth(define_.unit));
    embedding.scale = 1;
    if (cache_rows_) {
      AddUnit(define_, *cache_rows_, network_, embedding);
    } else {
      embedding.bins.push_back({0, static_cast<uint32_t>(words_), AddTable(), std::nullopt});
    }
    return embedding;
  }

  // The unit's outputs for all words, as a tensor that is not in the checkpoint.
  TensorId AddTable() {
    return network_.AddWhole(network_.Own(DefineTableTensor("define.table", define_)),
                             Role::kQuantised);
  }

  AdaptiveSoftmax DescribeSoftmax() {
    AdaptiveSoftmax softmax;
    softmax.name = "embeddings";
    softmax.width = static_cast<uint32_t>(layers_.width());
    softmax.normalisation = Normalisation::kWhole;
    std::vector<TensorId> tables;  // by band; the embedding may use them too
    for (const ClaimedDefine::Band& band : define_.bands) {
      tables.push_back(network_.AddWhole(*band.table, Role::kPrunedAlso));
    }
    uint32_t first = 0;
    for (size_t i = 0; i < define_.bands.size(); ++i) {
      const ClaimedDefine::Band& band = define_.bands[i];
      const auto size = static_cast<uint32_t>(band.table->shape[0]);
      const TensorId table = tables[i];
      if (i == 0) {
        softmax.head_size = size;
        softmax.head_table = table;
      } else {
        const Shape& shape = band.projection->shape;
        const TensorId projection =
            network_.AddTransposed(band.projection->name + ".transposed", {shape[1], shape[0]},
                                   Role::kPrunedAlso, band.projection);
        softmax.tails.push_back(
            {first, size, static_cast<uint32_t>(i - 1), projection, table, std::nullopt});
      }
      first += size;
    }
    if (!softmax.tails.empty()) {
      softmax.cluster_weight = network_.AddWhole(*classes_, Role::kQuantised);
      softmax.cluster_bias = network_.AddWhole(*class_bias_, Role::kQuantised);
    }
    return softmax;
  }

  Network network_;
  RecurrentLayers layers_;
  ClaimedDefine define_;
  const CheckpointTensor* classes_ = nullptr;
  const CheckpointTensor* class_bias_ = nullptr;
  uint64_t words_ = 0;
  std::optional<uint32_t> cache_rows_;  // of a unit that stays in the model
};

// Sizes, groups and depths follow from the shapes. Errors: KINGLET_INVALID_CHECKPOINT for missing,
// unused and mis-shaped tensors (all in one message), for a last layer that is not as wide as the
// Map layer, and for values that are not finite; those of DefineTable.
Result<LoadedModel> LoadDefineAwdLstm(const FamilyInput& input) { return Loader(input).Load(); }

}  // namespace

constexpr Family kDefineAwdLstm = {
    .name = "define-awd-lstm",
    .marks = "embeddings.embeds.0.weight define.finalProj.weight lstms.0.module.weight_ih_l0",
    .load = LoadDefineAwdLstm,
    .word_order = WordOrder::kFirstAppearance,
};

}  // namespace kinglet

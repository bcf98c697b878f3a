#include "converters/recipe/recipe_model.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "converters/network/network.h"
#include "converters/recipe/folded_parts.h"
#include "converters/recipe/recipe_blocks.h"
#include "converters/recipe/recipe_embedding.h"
#include "converters/recipe/recipe_names.h"
#include "converters/recipe/recipe_table.h"
#include "format/limits.h"

namespace kinglet {
namespace {

class ModelMaker {
 public:
  ModelMaker(const Recipe& recipe, std::span<const CheckpointTensor> weights, size_t threads)
      : recipe_(recipe), weights_(weights), threads_(threads), network_(weights) {}

  Result<LoadedModel> Make() {
    KINGLET_RETURN_IF_ERROR(CheckRecipeNames(recipe_, weights_, 0, "the recipe"));
    KINGLET_RETURN_IF_ERROR(Describe());
    return network_.Finish();
  }

 private:
  using Use = Network::Use;

  Status Describe() {
    if (recipe_.blocks) {
      KINGLET_RETURN_IF_ERROR(AddBlocks(*recipe_.blocks, network_));
      return SetTokens();
    }
    KINGLET_ASSIGN_OR_RETURN(AdaptiveEmbedding embedding,
                             MakeEmbedding(*recipe_.embedding, "embedding", threads_, network_));
    const uint32_t width = embedding.width;
    std::vector<Block>& blocks = network_.model.draft.description.blocks;
    blocks.emplace_back(std::move(embedding));
    if (recipe_.classifier) {
      KINGLET_ASSIGN_OR_RETURN(BagClassifier classifier, MakeClassifier(*recipe_.classifier));
      blocks.emplace_back(std::move(classifier));
    }
    if (!recipe_.softmax) return {};
    uint32_t hidden = width;
    if (recipe_.transformer) {
      KINGLET_RETURN_IF_ERROR(AddBlocks(*recipe_.transformer, network_));
    } else {
      KINGLET_ASSIGN_OR_RETURN(RecurrentDecoder decoder, MakeRecurrent(*recipe_.recurrent, width));
      hidden = decoder.layers.back().Outputs();
      blocks.emplace_back(std::move(decoder));
    }
    KINGLET_ASSIGN_OR_RETURN(AdaptiveSoftmax softmax, MakeSoftmax(*recipe_.softmax, hidden));
    blocks.emplace_back(std::move(softmax));
    KINGLET_RETURN_IF_ERROR(SetTokens());
    if (recipe_.cache) {
      const CacheRecipe& cache = *recipe_.cache;
      if (cache.capacity > kMaxCacheCapacity) {
        return RefuseModel("cache", "a capacity up to " + std::to_string(kMaxCacheCapacity),
                           std::to_string(cache.capacity));
      }
      blocks.emplace_back(NeuralCache{"cache", static_cast<uint32_t>(cache.capacity), cache.theta,
                                      cache.lambda, cache.start});
    }
    return {};
  }

  Status SetTokens() {
    ModelDescription& description = network_.model.draft.description;
    for (const auto& [key, from, to] :
         {std::tuple("start_token", recipe_.start_token, &description.start_token),
          std::tuple("end_token", recipe_.end_token, &description.end_token)}) {
      if (!from) continue;
      if (*from >= description.vocabulary_size) {
        return RefuseModel(key, "a word below " + std::to_string(description.vocabulary_size),
                           std::to_string(*from));
      }
      *to = static_cast<uint32_t>(*from);
    }
    return {};
  }

  Result<RecurrentDecoder> MakeRecurrent(const RecurrentRecipe& recipe, uint32_t inputs) {
    RecurrentDecoder decoder;
    decoder.name = "recurrent";
    decoder.inputs = inputs;
    if (recipe.layers.empty()) return RefuseModel("recurrent", "at least 1 layer", "0");
    const Change arranged = ArrangedGates(recipe.gates, recipe.cell, false);
    const Change biased = ArrangedGates(recipe.gates, recipe.cell, true);
    for (const RecurrentRecipe::Layer& from : recipe.layers) {
      const std::string name = "recurrent." + std::to_string(decoder.layers.size()) + ".";
      // Whether the forget bias is added to the recurrent bias, for lack of an input bias.
      const bool in_recurrent = !from.input_bias && from.recurrent_bias;
      const auto add_bias = [&](const char* part, const std::optional<TensorRef>& ref,
                                const Change& change) {
        return network_.AddOptionalRef(name + part, ref, Use::kVector, change);
      };
      RecurrentLayer layer{};
      layer.cell = recipe.cell;
      KINGLET_ASSIGN_OR_RETURN(
          layer.input_weight,
          network_.AddRef(name + "input_weight", from.input_weight, Use::kMatrix, arranged));
      KINGLET_ASSIGN_OR_RETURN(layer.input_bias, add_bias("input_bias", from.input_bias, biased));
      KINGLET_ASSIGN_OR_RETURN(
          layer.recurrent_weight,
          network_.AddOptionalRef(name + "recurrent_weight", from.recurrent_weight, Use::kMatrix,
                                  arranged));
      KINGLET_ASSIGN_OR_RETURN(layer.recurrent_bias, add_bias("recurrent_bias", from.recurrent_bias,
                                                              in_recurrent ? biased : arranged));
      const uint64_t rows = Rows(network_.ShapeOf(layer.input_weight)), gates = GatesOf(layer.cell);
      if (rows % gates != 0 || rows / gates > kMaxExtent) {
        return RefuseModel(name + "input_weight", std::to_string(gates) + " rows for each unit",
                           ShapeText(network_.ShapeOf(layer.input_weight)));
      }
      layer.units = static_cast<uint32_t>(rows / gates);
      if (recipe.gates.forget_bias != 0 && !layer.input_bias && !layer.recurrent_bias) {
        layer.input_bias = network_.AddValues(name + "input_bias", {rows},
                                              DenseF32{ForgetBiasAlone(recipe.gates, layer.units)},
                                              Role::kQuantised);
      }
      if (from.projection) {
        KINGLET_ASSIGN_OR_RETURN(
            const TensorId weight,
            network_.AddRef(name + "projection", *from.projection, Use::kMatrix));
        const uint64_t outputs = Rows(network_.ShapeOf(weight));
        if (layer.cell != RecurrentCell::kLstm) {
          return RefuseModel(name + "projection", "none, as the cell is no LSTM", "one");
        }
        if (outputs > kMaxExtent) {
          return RefuseModel(name + "projection", "at most " + std::to_string(kMaxExtent) + " rows",
                             std::to_string(outputs));
        }
        layer.projection = {static_cast<uint32_t>(outputs), weight, std::nullopt};
      }
      decoder.layers.push_back(layer);
    }
    return decoder;
  }

  struct AddedPart {
    AddedTable table{};
    std::optional<TensorId> projection, bias;
  };
  Result<AddedPart> AddPart(const std::string& name, const SoftmaxRecipe::Part& from) {
    AddedPart part;
    KINGLET_ASSIGN_OR_RETURN(part.table,
                             AddTable(name + "table", from.table, true, threads_, network_));
    KINGLET_ASSIGN_OR_RETURN(
        part.projection,
        network_.AddOptionalRef(name + "projection", from.projection, Use::kMatrix));
    KINGLET_ASSIGN_OR_RETURN(part.bias,
                             network_.AddOptionalRef(name + "bias", from.bias, Use::kVector));
    return part;
  }

  // A head whose words read P h and whose clusters read h (JoinHead).
  Status AddHeadNextToClusters(const SoftmaxRecipe& recipe, AdaptiveSoftmax& softmax) {
    const DenseRecipe* dense = recipe.head->table.dense();
    if (dense == nullptr) {
      return RefuseModel("softmax.head.table", "a dense table, as clusters read the hidden state",
                         "codes");
    }
    KINGLET_ASSIGN_OR_RETURN(const TensorValues<float> table, network_.Read(dense->values));
    KINGLET_ASSIGN_OR_RETURN(const TensorValues<float> projection,
                             network_.Read(*recipe.head->projection));
    KINGLET_ASSIGN_OR_RETURN(const TensorValues<float> clusters,
                             network_.Read(*recipe.cluster_weight));
    for (const TensorValues<float>* matrix : {&table, &projection, &clusters}) {
      if (matrix->shape.size() != 2 || matrix->shape[1] == 0) {
        return RefuseModel("softmax.head", "matrices", ShapeText(matrix->shape));
      }
    }
    KINGLET_RETURN_IF_ERROR(CheckOriented(*recipe.head->projection, projection.shape));
    const uint64_t words = table.shape[0], columns = table.shape[1], rows = clusters.shape[0];
    const uint64_t width = softmax.width;
    if (projection.shape != Shape{columns, width} || clusters.shape[1] != width) {
      return RefuseModel("softmax.head",
                         "a projection " + ShapeText({columns, width}) + " and clusters of " +
                             std::to_string(width) + " columns",
                         ShapeText(projection.shape) + " and " + ShapeText(clusters.shape));
    }
    KINGLET_RETURN_IF_ERROR(CheckWords("softmax.head", words));
    JointHead head = JoinHead(table.values, projection.values, clusters.values, columns, rows);
    const uint64_t joint = columns + rows;
    softmax.head_size = static_cast<uint32_t>(words);
    softmax.head_table = network_.AddValues("softmax.head.table", {words, joint},
                                            DenseF32{std::move(head.words)}, Role::kPrunedAlso);
    softmax.head_projection =
        network_.AddValues("softmax.head.projection", {joint, width},
                           DenseF32{std::move(head.projection)}, Role::kPrunedAlso);
    softmax.cluster_weight =
        network_.AddValues("softmax.clusters.weight", {rows, joint},
                           DenseF32{std::move(head.clusters)}, Role::kPrunedAlso);
    KINGLET_ASSIGN_OR_RETURN(
        softmax.head_bias,
        network_.AddOptionalRef("softmax.head.bias", recipe.head->bias, Use::kVector));
    return {};
  }

  Result<AdaptiveSoftmax> MakeSoftmax(const SoftmaxRecipe& recipe, uint32_t width) {
    AdaptiveSoftmax softmax{};
    softmax.name = "softmax";
    softmax.width = width;
    const std::string first = recipe.tails.empty() ? "softmax." : "softmax.head.";
    if (recipe.clusters_read_hidden) {
      KINGLET_RETURN_IF_ERROR(AddHeadNextToClusters(recipe, softmax));
    } else if (recipe.head) {
      KINGLET_ASSIGN_OR_RETURN(const AddedPart head, AddPart(first, *recipe.head));
      softmax.head_size = head.table.words;
      softmax.head_table = head.table.id;
      softmax.head_projection = head.projection;
      softmax.head_bias = head.bias;
    }
    uint64_t words = softmax.head_size;
    if (recipe.cluster_weight && !softmax.cluster_weight) {
      KINGLET_ASSIGN_OR_RETURN(
          softmax.cluster_weight,
          network_.AddRef("softmax.clusters.weight", *recipe.cluster_weight, Use::kMatrix));
    }
    KINGLET_ASSIGN_OR_RETURN(
        softmax.cluster_bias,
        network_.AddOptionalRef("softmax.clusters.bias", recipe.cluster_bias, Use::kVector));
    const size_t tails = recipe.tails.size();
    for (size_t i = 0; i < tails; ++i) {
      KINGLET_ASSIGN_OR_RETURN(
          const AddedPart tail,
          AddPart("softmax.tails." + std::to_string(i) + ".", recipe.tails[i]));
      softmax.tails.push_back({static_cast<uint32_t>(words), tail.table.words,
                               static_cast<uint32_t>(recipe.reversed ? tails - 1 - i : i),
                               tail.projection, tail.table.id, tail.bias});
      words += tail.table.words;
      KINGLET_RETURN_IF_ERROR(CheckWords("softmax", words));
    }
    const uint64_t inputs = network_.model.draft.description.vocabulary_size;
    if (words != inputs) {
      return RefuseModel("softmax", std::to_string(inputs) + " words, as many as the embedding has",
                         std::to_string(words));
    }
    return softmax;
  }

  Result<std::vector<float>> ReadOptional(const std::optional<TensorRef>& ref,
                                          const Shape& shape) const {
    return ref ? network_.Read(*ref, shape) : std::vector<float>();
  }

  // A batch norm as y = x * scale + shift.
  struct FoldedNorm {
    TensorId scale, shift;
  };
  Result<FoldedNorm> AddNorm(const std::string& name, const BatchNormRecipe& norm) {
    KINGLET_ASSIGN_OR_RETURN(const TensorValues<float> mean, network_.Read(norm.mean));
    const Shape& shape = mean.shape;
    KINGLET_ASSIGN_OR_RETURN(const std::vector<float> variance,
                             network_.Read(norm.variance, shape));
    KINGLET_ASSIGN_OR_RETURN(const std::vector<float> gain, ReadOptional(norm.gain, shape));
    KINGLET_ASSIGN_OR_RETURN(const std::vector<float> offset, ReadOptional(norm.offset, shape));
    auto folded = FoldBatchNorm(mean.values, variance, gain, offset, norm.epsilon);
    if (!folded) {
      return RefuseModel(name, "variances that are above 0 with epsilon added", "a smaller one");
    }
    const TensorId scale =
        network_.AddValues(name + ".scale", shape, DenseF32{std::move(folded->scale)}, Role::kKept);
    return FoldedNorm{scale, network_.AddValues(name + ".shift", shape,
                                                DenseF32{std::move(folded->shift)}, Role::kKept)};
  }

  Result<BagClassifier> MakeClassifier(const ClassifierRecipe& recipe) {
    BagClassifier classifier{};
    classifier.name = "classifier";
    classifier.max_pool = recipe.max_pool;
    if (recipe.padding) {
      const uint64_t words = network_.model.draft.description.vocabulary_size;
      if (*recipe.padding >= words) {
        return RefuseModel("classifier, padding", "a word below " + std::to_string(words),
                           std::to_string(*recipe.padding));
      }
      classifier.padding = static_cast<uint32_t>(*recipe.padding);
    }
    if (const auto& from = recipe.hidden) {
      const std::string name = "classifier.hidden.";
      BagHiddenLayer hidden{};
      KINGLET_ASSIGN_OR_RETURN(const FoldedNorm input, AddNorm(name + "input", from->input_norm));
      KINGLET_ASSIGN_OR_RETURN(hidden.weight,
                               network_.AddRef(name + "weight", from->weight, Use::kMatrix));
      KINGLET_ASSIGN_OR_RETURN(hidden.bias,
                               network_.AddOptionalRef(name + "bias", from->bias, Use::kVector));
      KINGLET_ASSIGN_OR_RETURN(const FoldedNorm output,
                               AddNorm(name + "output", from->output_norm));
      hidden.input_scale = input.scale;
      hidden.input_shift = input.shift;
      hidden.output_scale = output.scale;
      hidden.output_shift = output.shift;
      classifier.hidden = hidden;
    }
    KINGLET_ASSIGN_OR_RETURN(classifier.weight,
                             network_.AddRef("classifier.weight", recipe.weight, Use::kMatrix));
    KINGLET_ASSIGN_OR_RETURN(classifier.bias,
                             network_.AddOptionalRef("classifier.bias", recipe.bias, Use::kVector));
    const uint64_t classes = Rows(network_.ShapeOf(classifier.weight));
    if (classes > kMaxExtent) {
      return RefuseModel("classifier", "at most " + std::to_string(kMaxExtent) + " classes",
                         std::to_string(classes));
    }
    classifier.classes = static_cast<uint32_t>(classes);
    return classifier;
  }

  const Recipe& recipe_;
  std::span<const CheckpointTensor> weights_;
  const size_t threads_;
  Network network_;
};

}  // namespace

void KeepUnits(uint32_t cache_rows, Recipe& recipe) {
  if (recipe.embedding) KeepUnits(cache_rows, *recipe.embedding);
  for (auto& [name, table] : recipe.tables) KeepUnits(cache_rows, table.input);
}

Result<LoadedModel> ModelFromRecipe(const Recipe& recipe, std::span<const CheckpointTensor> weights,
                                    size_t threads) {
  return ModelMaker(recipe, weights, threads).Make();
}

}  // namespace kinglet

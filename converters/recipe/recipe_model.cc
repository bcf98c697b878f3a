#include "converters/recipe/recipe_model.h"

#include <algorithm>
#include <functional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "converters/passes/kd_codes.h"
#include "converters/recipe/folded_parts.h"
#include "converters/recipe/recipe_table.h"
#include "converters/recipe/recipe_tensors.h"
#include "converters/recipe/recipe_unit.h"
#include "converters/sources/quoted.h"
#include "format/limits.h"

namespace kinglet {
namespace {

Status RefuseModel(const std::string& where, const std::string& expected,
                   const std::string& found) {
  return Status::Refusal(KINGLET_INVALID_CHECKPOINT, "recipe", where, expected, found);
}

// The DeFINE unit that makes all vectors of the embedding; null if another table or a projection
// takes part. `Embedding` is an EmbeddingRecipe, const or not.
template <class Embedding>
auto* OnlyUnit(Embedding& recipe) {
  const bool alone = recipe.bins.size() == 1 && !recipe.bins[0].projection;
  return alone ? recipe.bins[0].table.define() : nullptr;
}

class ModelMaker {
 public:
  ModelMaker(const Recipe& recipe, std::span<const SourceTensor> weights, size_t threads)
      : recipe_(recipe), tensors_(weights), threads_(threads) {}

  Result<LoadedModel> Make() {
    KINGLET_RETURN_IF_ERROR(tensors_.CheckNames(recipe_));
    KINGLET_RETURN_IF_ERROR(Describe());
    model_.read = [readers = std::move(readers_)](TensorId id, EncodedTensor& tensor) -> Status {
      const auto reader = readers.find(id);
      if (reader == readers.end()) return {};
      KINGLET_ASSIGN_OR_RETURN(std::vector<float> values, reader->second());
      tensor.values = DenseF32{std::move(values)};
      return {};
    };
    return std::move(model_);
  }

 private:
  Status Describe() {
    KINGLET_ASSIGN_OR_RETURN(AdaptiveEmbedding embedding, MakeEmbedding(*recipe_.embedding));
    const uint32_t width = embedding.width;
    std::vector<Block>& blocks = model_.draft.description.blocks;
    blocks.emplace_back(std::move(embedding));
    if (recipe_.classifier) {
      KINGLET_ASSIGN_OR_RETURN(BagClassifier classifier, MakeClassifier(*recipe_.classifier));
      blocks.emplace_back(std::move(classifier));
    }
    if (!recipe_.recurrent) return {};
    KINGLET_ASSIGN_OR_RETURN(RecurrentDecoder decoder, MakeRecurrent(*recipe_.recurrent, width));
    KINGLET_ASSIGN_OR_RETURN(AdaptiveSoftmax softmax,
                             MakeSoftmax(*recipe_.softmax, decoder.layers.back().units));
    blocks.emplace_back(std::move(decoder));
    blocks.emplace_back(std::move(softmax));
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

  // What a tensor is to passes: tables and matrices are pruned and quantised, vectors are
  // quantised, and the parameters of norms stay as they are.
  enum class Use : uint8_t { kTable, kMatrix, kVector, kNorm };

  TensorId AddTensor(std::string name, Shape shape, decltype(EncodedTensor::values) values,
                     Use use) {
    const auto id = static_cast<TensorId>(model_.draft.tensors.size());
    model_.draft.tensors.push_back({std::move(name), std::move(shape), std::move(values), false});
    const bool coded = model_.draft.tensors.back().coded();
    if (!coded && use != Use::kNorm) model_.quantisable.push_back(id);
    const bool prunable = use == Use::kTable || use == Use::kMatrix;
    if (!coded && prunable) model_.prunable.push_back(id);
    return id;
  }

  // A tensor of the checkpoint as it is, or changed. Its values are read later, and a tensor that
  // is named twice is stored once.
  Result<TensorId> AddRef(const std::string& name, const TensorRef& ref, Use use,
                          const GateChange& change = {}) {
    const auto known = added_.equal_range(ref.name + change.name);
    for (auto at = known.first; at != known.second; ++at) {
      if (at->second.first == ref) return at->second.second;
    }
    KINGLET_ASSIGN_OR_RETURN(RecipeTensors::Deferred part, tensors_.Defer(ref));
    const size_t rank = use == Use::kVector ? 1 : 2;
    if (part.shape.size() != rank) {
      return RefuseModel(name, rank == 2 ? "a matrix" : "a vector",
                         ShapeText(part.shape) + " of " + QuotedName(ref.name));
    }
    if (use == Use::kMatrix) KINGLET_RETURN_IF_ERROR(CheckOriented(ref, part.shape));
    const TensorId id = AddTensor(name, std::move(part.shape), DenseF32{}, use);
    if (change.apply) {
      part.read = [read = std::move(part.read),
                   apply = change.apply]() -> Result<std::vector<float>> {
        KINGLET_ASSIGN_OR_RETURN(std::vector<float> values, read());
        apply(values);
        return values;
      };
    }
    readers_.emplace(id, std::move(part.read));
    added_.emplace(ref.name + change.name, std::pair(ref, id));
    return id;
  }
  Result<std::optional<TensorId>> AddOptionalRef(const std::string& name,
                                                 const std::optional<TensorRef>& ref, Use use,
                                                 const GateChange& change = {}) {
    if (!ref) return std::optional<TensorId>();
    KINGLET_ASSIGN_OR_RETURN(const TensorId id, AddRef(name, *ref, use, change));
    return std::optional(id);
  }

  const Shape& ShapeOf(TensorId id) const { return model_.draft.tensors[id].shape; }

  struct AddedTable {
    TensorId id;
    std::optional<TensorId> projection;  // [width, columns], of KD codes with a dense layer
    uint32_t words;
  };

  // `folded`: a projection of the table's own is multiplied into its codebook, because this place
  // of the model has no projection, or another one.
  Result<AddedTable> AddTable(const std::string& name, const TableRecipe& recipe, bool folded) {
    if (const DenseRecipe* dense = recipe.dense()) {
      KINGLET_ASSIGN_OR_RETURN(const TensorId id, AddRef(name, dense->values, Use::kTable));
      return CheckedTable(name, id, std::nullopt);
    }
    KINGLET_ASSIGN_OR_RETURN(RecipeTable table, MakeTable(recipe, tensors_, threads_));
    if (!table.note.empty()) model_.notes.push_back(table.note);
    if (!table.coded) {
      return CheckedTable(
          name, AddTensor(name, table.shape, DenseF32{std::move(table.dense)}, Use::kTable),
          std::nullopt);
    }
    CodedTable coded = std::move(*table.coded);
    if (folded && !table.projection.empty()) {
      coded = WithoutProjection({std::move(coded), std::exchange(table.projection, {})});
      table.shape[1] = Cols(coded);
    }
    DraftTable made = ForDraft(std::move(coded), table.seed);
    made.table.scheme.codebook =
        AddTensor(name + ".codebook", made.codebook_shape, std::move(made.codebook), Use::kTable);
    const TensorId id = AddTensor(name, table.shape, std::move(made.table), Use::kTable);
    std::optional<TensorId> projection;
    if (!table.projection.empty()) {
      const Shape projected = {table.projection.size() / table.shape[1], table.shape[1]};
      projection = AddTensor(name + ".projection", projected, DenseF32{std::move(table.projection)},
                             Use::kMatrix);
    }
    return CheckedTable(name, id, projection);
  }

  static Status CheckWords(const std::string& where, uint64_t words) {
    if (words <= kMaxDimension) return {};
    return RefuseModel(where, "at most " + std::to_string(kMaxDimension) + " words",
                       std::to_string(words));
  }

  Result<AddedTable> CheckedTable(const std::string& name, TensorId id,
                                  std::optional<TensorId> projection) const {
    const uint64_t words = Rows(ShapeOf(id));
    KINGLET_RETURN_IF_ERROR(CheckWords(name, words));
    return AddedTable{id, projection, static_cast<uint32_t>(words)};
  }

  Result<AdaptiveEmbedding> MakeEmbedding(const EmbeddingRecipe& recipe) {
    AdaptiveEmbedding embedding;
    embedding.name = "embedding";
    embedding.scale = recipe.scale;
    embedding.width = 0;
    uint64_t words = 0;
    if (recipe.bins.empty() || recipe.bins.size() > kMaxBins) {
      return RefuseModel("embedding", "1 to " + std::to_string(kMaxBins) + " bins",
                         std::to_string(recipe.bins.size()));
    }
    const DefineRecipe* unit = OnlyUnit(recipe);
    if (unit != nullptr && unit->cache_rows) {
      KINGLET_RETURN_IF_ERROR(AddUnit(*unit, embedding));
      return embedding;
    }
    for (size_t i = 0; i < recipe.bins.size(); ++i) {
      const EmbeddingRecipe::Bin& from = recipe.bins[i];
      const std::string name =
          recipe.bins.size() == 1 ? "embedding" : "embedding." + std::to_string(i);
      KINGLET_ASSIGN_OR_RETURN(const AddedTable table,
                               AddTable(name + ".table", from.table, from.projection.has_value()));
      std::optional<TensorId> projection = table.projection;
      if (from.projection) {
        KINGLET_ASSIGN_OR_RETURN(projection,
                                 AddRef(name + ".projection", *from.projection, Use::kMatrix));
      }
      const uint64_t width = projection ? Rows(ShapeOf(*projection)) : Cols(ShapeOf(table.id));
      if (width > kMaxExtent) {
        return RefuseModel(name, "a width up to " + std::to_string(kMaxExtent),
                           std::to_string(width));
      }
      if (i == 0) embedding.width = static_cast<uint32_t>(width);
      embedding.bins.push_back({static_cast<uint32_t>(words), table.words, table.id, projection});
      words += table.words;
    }
    KINGLET_RETURN_IF_ERROR(CheckWords("embedding", words));
    model_.draft.description.vocabulary_size = static_cast<uint32_t>(words);
    return embedding;
  }

  // A DeFINE unit that stays in the model. The bands of its Map layer become the embedding's bins.
  Status AddUnit(const DefineRecipe& recipe, AdaptiveEmbedding& embedding) {
    uint64_t words = 0, map_width = 0;
    if (recipe.map.empty() || recipe.map.size() > kMaxBins) {
      return RefuseModel("embedding, map", "1 to " + std::to_string(kMaxBins) + " bands",
                         std::to_string(recipe.map.size()));
    }
    for (size_t i = 0; i < recipe.map.size(); ++i) {
      const DefineRecipe::Band& from = recipe.map[i];
      const std::string name =
          recipe.map.size() == 1 ? "embedding.map." : "embedding.map." + std::to_string(i) + ".";
      KINGLET_ASSIGN_OR_RETURN(const AddedTable table, AddTable(name + "table", from.table[0],
                                                                from.projection.has_value()));
      std::optional<TensorId> projection = table.projection;
      if (from.projection) {
        KINGLET_ASSIGN_OR_RETURN(projection,
                                 AddRef(name + "projection", *from.projection, Use::kMatrix));
      }
      if (i == 0) map_width = projection ? Rows(ShapeOf(*projection)) : Cols(ShapeOf(table.id));
      embedding.bins.push_back(
          {static_cast<uint32_t>(words), table.words, table.id, projection, 0, from.scale});
      words += table.words;
    }
    KINGLET_RETURN_IF_ERROR(CheckWords("embedding", words));
    model_.draft.description.vocabulary_size = static_cast<uint32_t>(words);

    KINGLET_ASSIGN_OR_RETURN(RecipeUnit read, ReadUnit(recipe, map_width, tensors_));
    if (*recipe.cache_rows == 0 || *recipe.cache_rows > kMaxDimension) {
      return RefuseModel("embedding, cache_rows", "1 to " + std::to_string(kMaxDimension),
                         std::to_string(*recipe.cache_rows));
    }
    embedding.width = static_cast<uint32_t>(OutputWidth(read.unit));
    embedding.define = KeptDefineUnit{read.unit, {}, static_cast<uint32_t>(*recipe.cache_rows)};
    for (size_t i = 0; i < read.weights.size(); ++i) {
      const DefineShapes shapes = ShapesOf(read.unit.layers[i]);
      DefineWeights& values = read.weights[i];
      const auto add = [&](const char* part, const Shape& shape, std::vector<float>& entries,
                           Use use) -> std::optional<TensorId> {
        if (shape.empty()) return std::nullopt;
        return AddTensor("embedding.unit." + std::to_string(i) + "." + part, shape,
                         DenseF32{std::move(entries)}, use);
      };
      DefineTensors tensors{};
      tensors.weight = *add("weight", shapes.weight, values.weight, Use::kMatrix);
      tensors.bias = add("bias", shapes.bias, values.bias, Use::kVector);
      tensors.norm_gain = add("norm_gain", shapes.norm_gain, values.norm_gain, Use::kNorm);
      tensors.norm_offset = add("norm_offset", shapes.norm_offset, values.norm_offset, Use::kNorm);
      embedding.define->tensors.push_back(tensors);
    }
    return {};
  }

  Result<RecurrentDecoder> MakeRecurrent(const RecurrentRecipe& recipe, uint32_t inputs) {
    RecurrentDecoder decoder;
    decoder.name = "recurrent";
    decoder.inputs = inputs;
    if (recipe.layers.empty()) return RefuseModel("recurrent", "at least 1 layer", "0");
    const GateChange arranged = ArrangedGates(recipe.gates, recipe.cell, false);
    const GateChange biased = ArrangedGates(recipe.gates, recipe.cell, true);
    for (const RecurrentRecipe::Layer& from : recipe.layers) {
      const std::string name = "recurrent." + std::to_string(decoder.layers.size()) + ".";
      // Where a forget bias becomes a part of a bias.
      const bool in_recurrent = !from.input_bias && from.recurrent_bias;
      const auto add_bias = [&](const char* part, const std::optional<TensorRef>& ref,
                                const GateChange& change) {
        return AddOptionalRef(name + part, ref, Use::kVector, change);
      };
      RecurrentLayer layer{};
      layer.cell = recipe.cell;
      KINGLET_ASSIGN_OR_RETURN(layer.input_weight, AddRef(name + "input_weight", from.input_weight,
                                                          Use::kMatrix, arranged));
      KINGLET_ASSIGN_OR_RETURN(layer.input_bias, add_bias("input_bias", from.input_bias, biased));
      KINGLET_ASSIGN_OR_RETURN(
          layer.recurrent_weight,
          AddOptionalRef(name + "recurrent_weight", from.recurrent_weight, Use::kMatrix, arranged));
      KINGLET_ASSIGN_OR_RETURN(layer.recurrent_bias, add_bias("recurrent_bias", from.recurrent_bias,
                                                              in_recurrent ? biased : arranged));
      const uint64_t rows = Rows(ShapeOf(layer.input_weight)), gates = GatesOf(layer.cell);
      if (rows % gates != 0 || rows / gates > kMaxExtent) {
        return RefuseModel(name + "input_weight", std::to_string(gates) + " rows for each unit",
                           ShapeText(ShapeOf(layer.input_weight)));
      }
      layer.units = static_cast<uint32_t>(rows / gates);
      if (recipe.gates.forget_bias != 0 && !layer.input_bias && !layer.recurrent_bias) {
        layer.input_bias =
            AddTensor(name + "input_bias", {rows},
                      DenseF32{ForgetBiasAlone(recipe.gates, layer.units)}, Use::kVector);
      }
      decoder.layers.push_back(layer);
    }
    return decoder;
  }

  struct AddedPart {
    AddedTable table;
    std::optional<TensorId> projection, bias;
  };
  Result<AddedPart> AddPart(const std::string& name, const SoftmaxRecipe::Part& from) {
    AddedPart part;
    KINGLET_ASSIGN_OR_RETURN(part.table, AddTable(name + "table", from.table, true));
    KINGLET_ASSIGN_OR_RETURN(part.projection,
                             AddOptionalRef(name + "projection", from.projection, Use::kMatrix));
    KINGLET_ASSIGN_OR_RETURN(part.bias, AddOptionalRef(name + "bias", from.bias, Use::kVector));
    return part;
  }

  // A head whose words read P h and whose clusters read h (JoinHead).
  Status AddHeadBesideClusters(const SoftmaxRecipe& recipe, AdaptiveSoftmax& softmax) {
    const DenseRecipe* dense = recipe.head->table.dense();
    if (dense == nullptr) {
      return RefuseModel("softmax.head.table", "a tensor where clusters read the hidden state",
                         "codes");
    }
    KINGLET_ASSIGN_OR_RETURN(const TensorValues<float> table, tensors_.Read(dense->values));
    KINGLET_ASSIGN_OR_RETURN(const TensorValues<float> projection,
                             tensors_.Read(*recipe.head->projection));
    KINGLET_ASSIGN_OR_RETURN(const TensorValues<float> clusters,
                             tensors_.Read(*recipe.cluster_weight));
    for (const TensorValues<float>* matrix : {&table, &projection, &clusters}) {
      if (matrix->shape.size() != 2 || matrix->shape[1] == 0)
        return RefuseModel("softmax.head", "matrices", "another tensor");
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
    softmax.head_table = AddTensor("softmax.head.table", {words, joint},
                                   DenseF32{std::move(head.words)}, Use::kMatrix);
    softmax.head_projection = AddTensor("softmax.head.projection", {joint, width},
                                        DenseF32{std::move(head.projection)}, Use::kMatrix);
    softmax.cluster_weight = AddTensor("softmax.clusters.weight", {rows, joint},
                                       DenseF32{std::move(head.clusters)}, Use::kMatrix);
    KINGLET_ASSIGN_OR_RETURN(softmax.head_bias,
                             AddOptionalRef("softmax.head.bias", recipe.head->bias, Use::kVector));
    return {};
  }

  Result<AdaptiveSoftmax> MakeSoftmax(const SoftmaxRecipe& recipe, uint32_t width) {
    AdaptiveSoftmax softmax{};
    softmax.name = "softmax";
    softmax.width = width;
    const std::string first = recipe.tails.empty() ? "softmax." : "softmax.head.";
    if (recipe.clusters_read_hidden) {
      KINGLET_RETURN_IF_ERROR(AddHeadBesideClusters(recipe, softmax));
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
          AddRef("softmax.clusters.weight", *recipe.cluster_weight, Use::kMatrix));
    }
    KINGLET_ASSIGN_OR_RETURN(
        softmax.cluster_bias,
        AddOptionalRef("softmax.clusters.bias", recipe.cluster_bias, Use::kVector));
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
    return softmax;
  }

  Result<std::vector<float>> ReadOptional(const std::optional<TensorRef>& ref,
                                          const Shape& shape) const {
    return ref ? tensors_.Read(*ref, shape) : std::vector<float>();
  }

  // A batch norm as y = x * scale + shift.
  struct FoldedNorm {
    TensorId scale, shift;
  };
  Result<FoldedNorm> AddNorm(const std::string& name, const BatchNormRecipe& norm) {
    KINGLET_ASSIGN_OR_RETURN(const TensorValues<float> mean, tensors_.Read(norm.mean));
    const Shape& shape = mean.shape;
    KINGLET_ASSIGN_OR_RETURN(const std::vector<float> variance,
                             tensors_.Read(norm.variance, shape));
    KINGLET_ASSIGN_OR_RETURN(const std::vector<float> gain, ReadOptional(norm.gain, shape));
    KINGLET_ASSIGN_OR_RETURN(const std::vector<float> offset, ReadOptional(norm.offset, shape));
    auto folded = FoldBatchNorm(mean.values, variance, gain, offset, norm.epsilon);
    if (!folded) {
      return RefuseModel(name, "variances that are above 0 with epsilon", "another");
    }
    const TensorId scale =
        AddTensor(name + ".scale", shape, DenseF32{std::move(folded->scale)}, Use::kNorm);
    return FoldedNorm{
        scale, AddTensor(name + ".shift", shape, DenseF32{std::move(folded->shift)}, Use::kNorm)};
  }

  Result<BagClassifier> MakeClassifier(const ClassifierRecipe& recipe) {
    BagClassifier classifier{};
    classifier.name = "classifier";
    classifier.max_pool = recipe.max_pool;
    if (recipe.padding) {
      const uint64_t words = model_.draft.description.vocabulary_size;
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
      KINGLET_ASSIGN_OR_RETURN(hidden.weight, AddRef(name + "weight", from->weight, Use::kMatrix));
      KINGLET_ASSIGN_OR_RETURN(hidden.bias,
                               AddOptionalRef(name + "bias", from->bias, Use::kVector));
      KINGLET_ASSIGN_OR_RETURN(const FoldedNorm output,
                               AddNorm(name + "output", from->output_norm));
      hidden.input_scale = input.scale;
      hidden.input_shift = input.shift;
      hidden.output_scale = output.scale;
      hidden.output_shift = output.shift;
      classifier.hidden = hidden;
    }
    KINGLET_ASSIGN_OR_RETURN(classifier.weight,
                             AddRef("classifier.weight", recipe.weight, Use::kMatrix));
    KINGLET_ASSIGN_OR_RETURN(classifier.bias,
                             AddOptionalRef("classifier.bias", recipe.bias, Use::kVector));
    const uint64_t classes = Rows(ShapeOf(classifier.weight));
    if (classes > kMaxExtent) {
      return RefuseModel("classifier", "at most " + std::to_string(kMaxExtent) + " classes",
                         std::to_string(classes));
    }
    classifier.classes = static_cast<uint32_t>(classes);
    return classifier;
  }

  const Recipe& recipe_;
  const RecipeTensors tensors_;
  size_t threads_;
  std::unordered_multimap<std::string, std::pair<TensorRef, TensorId>> added_;  // by name
  std::unordered_map<TensorId, std::function<Result<std::vector<float>>()>> readers_;
  LoadedModel model_;
};

}  // namespace

void KeepUnit(uint32_t cache_rows, Recipe& recipe) {
  if (DefineRecipe* unit = OnlyUnit(*recipe.embedding)) unit->cache_rows = cache_rows;
}

Result<LoadedModel> ModelFromRecipe(const Recipe& recipe, std::span<const SourceTensor> weights,
                                    size_t threads) {
  return ModelMaker(recipe, weights, threads).Make();
}

}  // namespace kinglet

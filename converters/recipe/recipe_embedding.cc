#include "converters/recipe/recipe_embedding.h"

#include <optional>
#include <utility>
#include <vector>

#include "converters/recipe/recipe_table.h"
#include "converters/recipe/recipe_unit.h"
#include "format/limits.h"

namespace kinglet {
namespace {

class EmbeddingMaker {
 public:
  EmbeddingMaker(const std::string& name, size_t threads, Network& network)
      : name_(name), threads_(threads), network_(network) {}

  Result<AdaptiveEmbedding> Make(const EmbeddingRecipe& recipe) {
    embedding_.name = name_;
    embedding_.scale = recipe.scale;
    embedding_.width = 0;
    KINGLET_RETURN_IF_ERROR(CheckBins("bins", recipe.bins.size()));
    for (size_t i = 0; i < recipe.bins.size(); ++i) {
      const EmbeddingRecipe::Bin& bin = recipe.bins[i];
      const std::string part = recipe.bins.size() == 1 ? "" : "." + std::to_string(i);
      const DefineRecipe* const unit = bin.table.define();
      KINGLET_ASSIGN_OR_RETURN(const uint64_t width,
                               unit != nullptr && unit->cache_rows
                                   ? AddUnit(name_ + part, *unit, bin.projection)
                                   : AddBin(name_ + part, bin.table, bin.projection, /*scale=*/1));
      if (width > kMaxExtent) {
        return RefuseModel(name_ + part, "a width up to " + std::to_string(kMaxExtent),
                           std::to_string(width));
      }
      if (i == 0) embedding_.width = static_cast<uint32_t>(width);
    }
    KINGLET_RETURN_IF_ERROR(CheckBins("bins and bands", embedding_.bins.size()));
    KINGLET_RETURN_IF_ERROR(CheckWords(name_, words_));
    network_.model.draft.description.vocabulary_size = static_cast<uint32_t>(words_);
    return std::move(embedding_);
  }

 private:
  using Use = Network::Use;

  Status CheckBins(const char* what, size_t count) const {
    if (count > 0 && count <= kMaxBins) return {};
    return RefuseModel(name_, "1 to " + std::to_string(kMaxBins) + " " + what,
                       std::to_string(count));
  }

  // The table of a bin or of a band of the Map layer. Returns the width of its vectors.
  Result<uint64_t> AddBin(const std::string& prefix, const TableRecipe& recipe,
                          const std::optional<TensorRef>& own_projection, double scale) {
    KINGLET_ASSIGN_OR_RETURN(
        const AddedTable table,
        AddTable(prefix + ".table", recipe, own_projection.has_value(), threads_, network_));
    std::optional<TensorId> projection = table.projection;
    if (own_projection) {
      KINGLET_ASSIGN_OR_RETURN(
          projection, network_.AddRef(prefix + ".projection", *own_projection, Use::kMatrix));
    }
    embedding_.bins.push_back(
        {static_cast<uint32_t>(words_), table.words, table.id, projection, 0, scale});
    words_ += table.words;
    return projection ? Rows(network_.ShapeOf(*projection)) : Cols(network_.ShapeOf(table.id));
  }

  // A DeFINE unit that stays in the model. The bands of its Map layer become bins of the embedding,
  // and a projection of its output becomes its last layer. Returns the output's width.
  Result<uint64_t> AddUnit(const std::string& name, const DefineRecipe& recipe,
                           const std::optional<TensorRef>& projection) {
    KINGLET_RETURN_IF_ERROR(CheckBins("bands of the map", recipe.map.size()));
    const auto first_bin = static_cast<uint32_t>(embedding_.bins.size());
    uint64_t map_width = 0;
    for (size_t i = 0; i < recipe.map.size(); ++i) {
      const DefineRecipe::Band& from = recipe.map[i];
      const std::string prefix =
          recipe.map.size() == 1 ? name + ".map" : name + ".map." + std::to_string(i);
      KINGLET_ASSIGN_OR_RETURN(const uint64_t width,
                               AddBin(prefix, from.table[0], from.projection, from.scale));
      if (i == 0) map_width = width;
    }
    KINGLET_ASSIGN_OR_RETURN(RecipeUnit read, ReadUnit(recipe, map_width, network_));
    if (*recipe.cache_rows == 0 || *recipe.cache_rows > kMaxDimension) {
      return RefuseModel(name + ", cache_rows", "1 to " + std::to_string(kMaxDimension),
                         std::to_string(*recipe.cache_rows));
    }
    KeptDefineUnit kept{first_bin,
                        static_cast<uint32_t>(recipe.map.size()),
                        read.unit,
                        {},
                        static_cast<uint32_t>(*recipe.cache_rows)};
    for (size_t i = 0; i < read.weights.size(); ++i) {
      const DefineShapes shapes = ShapesOf(read.unit.layers[i]);
      DefineWeights& values = read.weights[i];
      const auto add = [&](const char* part, const Shape& shape, std::vector<float>& entries,
                           Role role) -> std::optional<TensorId> {
        if (shape.empty()) return std::nullopt;
        return network_.AddValues(name + ".unit." + std::to_string(i) + "." + part, shape,
                                  DenseF32{std::move(entries)}, role);
      };
      DefineTensors tensors{};
      tensors.weight = *add("weight", shapes.weight, values.weight, Role::kPrunedAlso);
      tensors.bias = add("bias", shapes.bias, values.bias, Role::kQuantised);
      tensors.norm_gain = add("norm_gain", shapes.norm_gain, values.norm_gain, Role::kKept);
      tensors.norm_offset = add("norm_offset", shapes.norm_offset, values.norm_offset, Role::kKept);
      kept.tensors.push_back(tensors);
    }
    if (projection) {
      KINGLET_ASSIGN_OR_RETURN(const TensorId matrix,
                               network_.AddRef(name + ".projection", *projection, Use::kMatrix));
      AppendProjection(matrix, network_.ShapeOf(matrix), kept);
    }
    const uint64_t width = OutputWidth(kept.unit);
    embedding_.units.push_back(std::move(kept));
    return width;
  }

  const std::string& name_;
  const size_t threads_;
  Network& network_;
  AdaptiveEmbedding embedding_;
  uint64_t words_ = 0;  // of the bins so far
};

}  // namespace

Result<AdaptiveEmbedding> MakeEmbedding(const EmbeddingRecipe& recipe, const std::string& name,
                                        size_t threads, Network& network) {
  return EmbeddingMaker(name, threads, network).Make(recipe);
}

void KeepUnits(uint32_t cache_rows, EmbeddingRecipe& recipe) {
  for (EmbeddingRecipe::Bin& bin : recipe.bins) {
    if (DefineRecipe* const unit = bin.table.define()) unit->cache_rows = cache_rows;
  }
}

void AppendProjection(TensorId matrix, const Shape& shape, KeptDefineUnit& unit) {
  DefineLayer layer;
  layer.in = Cols(shape);
  layer.out = Rows(shape);
  layer.bias = DefineLayer::Bias::kNone;
  unit.unit.layers.push_back(layer);
  unit.tensors.push_back({matrix, std::nullopt, std::nullopt, std::nullopt});
}

}  // namespace kinglet

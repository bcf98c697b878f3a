#include "converters/recipe/model_parts.h"

#include "converters/checkpoints/quoted.h"
#include "converters/passes/kd_codes.h"
#include "converters/recipe/recipe_table.h"
#include "format/limits.h"

namespace kinglet {

Status RefuseModel(const std::string& where, const std::string& expected,
                   const std::string& found) {
  return Status::Refusal(KINGLET_INVALID_CHECKPOINT, "recipe", where, expected, found);
}

TensorId ModelParts::AddTensor(std::string name, Shape shape,
                               decltype(EncodedTensor::values) values, Use use) {
  const auto id = static_cast<TensorId>(model.draft.tensors.size());
  model.draft.tensors.push_back({std::move(name), std::move(shape), std::move(values), false});
  const bool coded = model.draft.tensors.back().coded();
  if (!coded && use != Use::kKept) model.quantisable.push_back(id);
  const bool prunable = use == Use::kTable || use == Use::kMatrix;
  if (!coded && prunable) model.prunable.push_back(id);
  return id;
}

TensorId ModelParts::AddDeferred(std::string name, Shape shape, Read read, Use use) {
  const TensorId id = AddTensor(std::move(name), std::move(shape), DenseF32{}, use);
  readers_.emplace(id, std::move(read));
  return id;
}

std::optional<TensorId> ModelParts::Known(const TensorRef& ref, const Shape& shape,
                                          const std::string& change) const {
  const auto known = added_.equal_range(ref.name + change);
  for (auto at = known.first; at != known.second; ++at) {
    if (at->second.first == ref && ShapeOf(at->second.second) == shape) return at->second.second;
  }
  return std::nullopt;
}

Result<TensorId> ModelParts::AddRef(const std::string& name, const TensorRef& ref, Use use,
                                    const GateChange& change) {
  KINGLET_ASSIGN_OR_RETURN(RecipeTensors::Deferred part, tensors_.Defer(ref));
  if (const auto known = Known(ref, part.shape, change.name)) return *known;
  const size_t rank = use == Use::kTable || use == Use::kMatrix ? 2 : 1;
  if (part.shape.size() != rank) {
    return RefuseModel(name, rank == 2 ? "a matrix" : "a vector",
                       ShapeText(part.shape) + " of " + QuotedName(ref.name));
  }
  if (use == Use::kMatrix) KINGLET_RETURN_IF_ERROR(CheckOriented(ref, part.shape));
  if (change.apply) {
    part.read = [read = std::move(part.read),
                 apply = change.apply]() -> Result<std::vector<float>> {
      KINGLET_ASSIGN_OR_RETURN(std::vector<float> values, read());
      apply(values);
      return values;
    };
  }
  const TensorId id = AddDeferred(name, std::move(part.shape), std::move(part.read), use);
  added_.emplace(ref.name + change.name, std::pair(ref, id));
  return id;
}

Result<TensorId> ModelParts::AddRefAs(const std::string& name, const TensorRef& ref,
                                      const Shape& shape, Use use) {
  KINGLET_ASSIGN_OR_RETURN(RecipeTensors::Deferred part, tensors_.Defer(ref));
  if (const auto known = Known(ref, shape, "")) return *known;
  if (CountEntries(part.shape) != Count(shape)) {
    return RefuseModel(name, ShapeText(shape),
                       ShapeText(part.shape) + " of " + QuotedName(ref.name));
  }
  const TensorId id = AddDeferred(name, shape, std::move(part.read), use);
  added_.emplace(ref.name, std::pair(ref, id));
  return id;
}

Result<std::optional<TensorId>> ModelParts::AddOptionalRef(const std::string& name,
                                                           const std::optional<TensorRef>& ref,
                                                           Use use, const GateChange& change) {
  if (!ref) return std::optional<TensorId>();
  KINGLET_ASSIGN_OR_RETURN(const TensorId id, AddRef(name, *ref, use, change));
  return std::optional(id);
}

Result<ModelParts::AddedTable> ModelParts::AddTable(const std::string& name,
                                                    const TableRecipe& recipe, bool folded) {
  if (const DenseRecipe* dense = recipe.dense()) {
    KINGLET_ASSIGN_OR_RETURN(const TensorId id, AddRef(name, dense->values, Use::kTable));
    return CheckedTable(name, id, std::nullopt);
  }
  KINGLET_ASSIGN_OR_RETURN(RecipeTable table, MakeTable(recipe, tensors_, threads_));
  if (!table.note.empty()) model.notes.push_back(table.note);
  if (!table.coded) {
    return CheckedTable(name,
                        AddTensor(name, table.shape, DenseF32{std::move(table.dense)}, Use::kTable),
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

Status ModelParts::CheckWords(const std::string& where, uint64_t words) {
  if (words <= kMaxDimension) return {};
  return RefuseModel(where, "at most " + std::to_string(kMaxDimension) + " words",
                     std::to_string(words));
}

Result<ModelParts::AddedTable> ModelParts::CheckedTable(const std::string& name, TensorId id,
                                                        std::optional<TensorId> projection) const {
  const uint64_t words = Rows(ShapeOf(id));
  KINGLET_RETURN_IF_ERROR(CheckWords(name, words));
  return AddedTable{id, projection, static_cast<uint32_t>(words)};
}

LoadedModel ModelParts::Finish() {
  model.read = [readers = std::move(readers_)](TensorId id, EncodedTensor& tensor) -> Status {
    const auto reader = readers.find(id);
    if (reader == readers.end()) return {};
    KINGLET_ASSIGN_OR_RETURN(std::vector<float> values, reader->second());
    tensor.values = DenseF32{std::move(values)};
    return {};
  };
  return std::move(model);
}

}  // namespace kinglet

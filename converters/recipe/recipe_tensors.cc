#include "converters/recipe/recipe_tensors.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "converters/checkpoints/quoted.h"
#include "converters/families/draft_builder.h"

namespace kinglet {
namespace {

std::string RangeText(const TensorRef::Range& range) {
  return "[" + std::to_string(range.begin) + ", " + std::to_string(range.end) + ")";
}

Status CheckRefRange(const TensorRef& ref, const char* what,
                     const std::optional<TensorRef::Range>& range, uint64_t size) {
  if (!range || range->end <= size) return {};
  return RefuseTensor(ref, std::string(what) + " " + RangeText(*range),
                      std::to_string(size) + " " + what);
}

bool IsWhole(const TensorRef& ref) { return !ref.rows && !ref.columns && !ref.transpose; }

// The shape of the part that the reference selects of a tensor of this shape.
Result<Shape> PartShape(const TensorRef& ref, const Shape& shape) {
  if (IsWhole(ref)) return shape;
  if (shape.size() != 1 && shape.size() != 2) {
    return RefuseTensor(ref, "a vector or a matrix to take a part of", ShapeText(shape));
  }
  if (shape.size() == 1 && (ref.rows || ref.transpose)) {
    return RefuseTensor(ref, "a matrix for rows or a transposition", ShapeText(shape));
  }
  KINGLET_RETURN_IF_ERROR(CheckRefRange(ref, "rows", ref.rows, Rows(shape)));
  KINGLET_RETURN_IF_ERROR(CheckRefRange(ref, "columns", ref.columns, Cols(shape)));
  const TensorRef::Range rows = ref.rows.value_or(TensorRef::Range{0, Rows(shape)});
  const TensorRef::Range columns = ref.columns.value_or(TensorRef::Range{0, Cols(shape)});
  const uint64_t height = rows.end - rows.begin, width = columns.end - columns.begin;
  if (shape.size() == 1) return Shape{width};
  return ref.transpose ? Shape{width, height} : Shape{height, width};
}

template <class T>
Result<TensorValues<T>> PartOf(const TensorRef& ref, const Shape& shape, std::vector<T> values) {
  TensorValues<T> part;
  KINGLET_ASSIGN_OR_RETURN(part.shape, PartShape(ref, shape));
  if (IsWhole(ref)) {
    part.values = std::move(values);
    return part;
  }
  const uint64_t first = ref.rows ? ref.rows->begin : 0;
  const uint64_t first_column = ref.columns ? ref.columns->begin : 0;
  const uint64_t height = ref.transpose ? Cols(part.shape) : Rows(part.shape);
  const uint64_t width = ref.transpose ? Rows(part.shape) : Cols(part.shape);
  part.values.resize(height * width);
  for (uint64_t row = 0; row < height; ++row) {
    for (uint64_t column = 0; column < width; ++column) {
      const T value = values[(first + row) * Cols(shape) + first_column + column];
      part.values[ref.transpose ? column * height + row : row * width + column] = value;
    }
  }
  return part;
}

}  // namespace

Status RefuseTensor(const TensorRef& ref, const std::string& expected, const std::string& found) {
  return Status::Refusal(KINGLET_INVALID_CHECKPOINT, "checkpoint", "tensor " + QuotedName(ref.name),
                         expected, found);
}

bool LeavesOut(const Recipe& recipe, std::string_view name) {
  return std::any_of(recipe.unused.begin(), recipe.unused.end(),
                     [name](const std::string& pattern) { return MatchesPattern(pattern, name); });
}

Status CheckOriented(const TensorRef& ref, const Shape& shape) {
  if (ref.oriented || shape.size() != 2 || shape[0] != shape[1]) return {};
  return RefuseTensor(ref,
                      "\"transpose\" true or false in its reference, as a square matrix fits both "
                      "ways (true for TensorFlow's [inputs, outputs])",
                      "none");
}

RecipeTensors::RecipeTensors(std::span<const CheckpointTensor> weights) : weights_(weights) {
  for (const CheckpointTensor& tensor : weights) by_name_.emplace(tensor.name, &tensor);
}

Status RecipeTensors::CheckUnique() const {
  for (const CheckpointTensor& tensor : weights_) {
    if (by_name_.at(tensor.name) == &tensor) continue;
    return Status::Refusal(KINGLET_INVALID_CHECKPOINT, "checkpoint",
                           "tensor " + QuotedName(tensor.name), "one of this name in all files",
                           "another in the recipe's \"sources\"");
  }
  return {};
}

Status RecipeTensors::CheckTableNames(const Recipe& recipe, size_t extra) const {
  KINGLET_RETURN_IF_ERROR(CheckUnique());
  DraftBuilder names(weights_);
  std::unordered_set<std::string_view> asked;
  for (const std::string& name : recipe.references) {
    if (asked.insert(name).second) names.ClaimUnshaped(name);
  }
  for (size_t i = 0; i < weights_.size(); ++i) {
    if (i < extra || LeavesOut(recipe, weights_[i].name)) names.RemoveExcluded(weights_[i].name);
  }
  return names.CheckNames("the recipe's tables");
}

Status RecipeTensors::CheckNames(const Recipe& recipe) const {
  KINGLET_RETURN_IF_ERROR(CheckUnique());
  DraftBuilder names(weights_);
  std::unordered_set<std::string_view> asked;
  for (const std::string& name : recipe.references) {
    if (asked.insert(name).second) names.ClaimUnshaped(name);
  }
  for (const CheckpointTensor& tensor : weights_) {
    if (LeavesOut(recipe, tensor.name)) names.RemoveExcluded(tensor.name);
  }
  return names.CheckNames("the recipe");
}

Result<const CheckpointTensor*> RecipeTensors::Find(const TensorRef& ref) const {
  const auto found = by_name_.find(ref.name);
  if (found == by_name_.end()) return RefuseTensor(ref, "a tensor of this name", "none");
  return found->second;
}

Result<TensorValues<float>> RecipeTensors::Read(const TensorRef& ref) const {
  KINGLET_ASSIGN_OR_RETURN(const CheckpointTensor* tensor, Find(ref));
  KINGLET_ASSIGN_OR_RETURN(std::vector<float> values, ReadFinite(*tensor));
  return PartOf(ref, tensor->shape, std::move(values));
}

Result<RecipeTensors::Deferred> RecipeTensors::Defer(const TensorRef& ref) const {
  KINGLET_ASSIGN_OR_RETURN(const CheckpointTensor* tensor, Find(ref));
  Deferred deferred;
  KINGLET_ASSIGN_OR_RETURN(deferred.shape, PartShape(ref, tensor->shape));
  deferred.read = [tensor = *tensor, ref]() -> Result<std::vector<float>> {
    if (ref.rows && !ref.columns && !ref.transpose) {
      return ReadFiniteRows(tensor, ref.rows->begin, ref.rows->end - ref.rows->begin);
    }
    if (ref.transpose && !ref.rows && !ref.columns) return ReadFiniteTransposed(tensor);
    KINGLET_ASSIGN_OR_RETURN(std::vector<float> values, ReadFinite(tensor));
    KINGLET_ASSIGN_OR_RETURN(TensorValues<float> part,
                             PartOf(ref, tensor.shape, std::move(values)));
    return std::move(part.values);
  };
  return deferred;
}

Result<TensorValues<int64_t>> RecipeTensors::ReadIntegers(const TensorRef& ref) const {
  KINGLET_ASSIGN_OR_RETURN(const CheckpointTensor* tensor, Find(ref));
  KINGLET_ASSIGN_OR_RETURN(std::vector<int64_t> values, kinglet::ReadIntegers(*tensor));
  return PartOf(ref, tensor->shape, std::move(values));
}

Result<std::vector<float>> RecipeTensors::Read(const TensorRef& ref, const Shape& shape) const {
  KINGLET_ASSIGN_OR_RETURN(TensorValues<float> read, Read(ref));
  if (read.shape == shape) return std::move(read.values);
  return RefuseTensor(ref, "shape " + ShapeText(shape), ShapeText(read.shape));
}

}  // namespace kinglet

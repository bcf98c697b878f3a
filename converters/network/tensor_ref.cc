#include "converters/network/tensor_ref.h"

#include <utility>

#include "converters/checkpoints/quoted.h"

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

template <class T>
std::vector<T> PartOf(const TensorRef& ref, const Shape& shape, const Shape& part_shape,
                      std::vector<T> values) {
  if (ref.whole()) return values;
  const uint64_t first = ref.rows ? ref.rows->begin : 0;
  const uint64_t first_column = ref.columns ? ref.columns->begin : 0;
  const uint64_t height = ref.transpose ? Cols(part_shape) : Rows(part_shape);
  const uint64_t width = ref.transpose ? Rows(part_shape) : Cols(part_shape);
  std::vector<T> part(height * width);
  for (uint64_t row = 0; row < height; ++row) {
    for (uint64_t column = 0; column < width; ++column) {
      const T value = values[(first + row) * Cols(shape) + first_column + column];
      part[ref.transpose ? column * height + row : row * width + column] = value;
    }
  }
  return part;
}

}  // namespace

Status RefuseTensor(const TensorRef& ref, const std::string& expected, const std::string& found) {
  return Status::Refusal(KINGLET_INVALID_CHECKPOINT, "checkpoint", "tensor " + QuotedName(ref.name),
                         expected, found);
}

Status RefuseModel(const std::string& where, const std::string& expected,
                   const std::string& found) {
  return Status::Refusal(KINGLET_INVALID_CHECKPOINT, "recipe", where, expected, found);
}

Status CheckOriented(const TensorRef& ref, const Shape& shape) {
  if (ref.oriented || shape.size() != 2 || shape[0] != shape[1]) return {};
  return RefuseTensor(ref,
                      "\"transpose\" true or false in its reference, as a square matrix fits both "
                      "ways (true for TensorFlow's [inputs, outputs])",
                      "none");
}

Result<Shape> PartShape(const TensorRef& ref, const Shape& shape) {
  if (ref.whole()) return shape;
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

Result<std::vector<float>> ReadPart(const CheckpointTensor& tensor, const TensorRef& ref) {
  KINGLET_ASSIGN_OR_RETURN(const Shape part, PartShape(ref, tensor.shape));
  if (ref.whole()) return ReadFinite(tensor);
  if (ref.transpose && !ref.rows && !ref.columns) return ReadFiniteTransposed(tensor);
  if (tensor.shape.size() == 1) return ReadFiniteRows(tensor, ref.columns->begin, part[0]);
  if (!ref.rows) {
    KINGLET_ASSIGN_OR_RETURN(std::vector<float> values, ReadFinite(tensor));
    return PartOf(ref, tensor.shape, part, std::move(values));
  }
  const uint64_t rows = ref.rows->end - ref.rows->begin;
  KINGLET_ASSIGN_OR_RETURN(std::vector<float> values,
                           ReadFiniteRows(tensor, ref.rows->begin, rows));
  TensorRef rest = ref;
  rest.rows.reset();
  return PartOf(rest, {rows, Cols(tensor.shape)}, part, std::move(values));
}

Result<TensorValues<int64_t>> ReadIntegerPart(const CheckpointTensor& tensor,
                                              const TensorRef& ref) {
  TensorValues<int64_t> part;
  KINGLET_ASSIGN_OR_RETURN(part.shape, PartShape(ref, tensor.shape));
  KINGLET_ASSIGN_OR_RETURN(std::vector<int64_t> values, ReadIntegers(tensor));
  part.values = PartOf(ref, tensor.shape, part.shape, std::move(values));
  return part;
}

}  // namespace kinglet

// A reference to a tensor of a checkpoint, or to a part of one.
#ifndef KINGLET_CONVERTERS_NETWORK_TENSOR_REF_H_
#define KINGLET_CONVERTERS_NETWORK_TENSOR_REF_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "converters/checkpoints/checkpoint_tensors.h"
#include "format/encoding.h"
#include "kinglet/status.h"

namespace kinglet {

// Rows and columns are selected first (a vector has columns only), then transposed.
struct TensorRef {
  struct Range {
    uint64_t begin = 0, end = 0;
    bool operator==(const Range&) const = default;
  };
  std::string name;
  std::optional<Range> rows = {}, columns = {};
  bool transpose = false;
  // Whether a recipe states the orientation. A square matrix fits both ways.
  bool oriented = false;

  bool whole() const { return !rows && !columns && !transpose; }
  // Whether both select the same part; `oriented` does not count.
  bool operator==(const TensorRef& other) const {
    return name == other.name && rows == other.rows && columns == other.columns &&
           transpose == other.transpose;
  }
};

template <class T>
struct TensorValues {
  Shape shape;
  std::vector<T> values;  // row-major
};

// KINGLET_INVALID_CHECKPOINT, "checkpoint: tensor NAME: expected .., found ..".
Status RefuseTensor(const TensorRef& ref, const std::string& expected, const std::string& found);

// KINGLET_INVALID_CHECKPOINT, "recipe: WHERE: expected .., found ..".
Status RefuseModel(const std::string& where, const std::string& expected, const std::string& found);

// Refuses a square matrix whose reference does not state its orientation: frameworks store
// [outputs, inputs] or [inputs, outputs], and both fit. `shape` is the referenced part's.
Status CheckOriented(const TensorRef& ref, const Shape& shape);

// The shape of the part that `ref` selects of a tensor of this shape. Errors:
// KINGLET_INVALID_CHECKPOINT for ranges that are outside the tensor.
Result<Shape> PartShape(const TensorRef& ref, const Shape& shape);

// The values of the part of `tensor`; reads no more of the tensor than it needs where the file
// allows that. Errors: those of PartShape, and for floats that are not finite.
Result<std::vector<float>> ReadPart(const CheckpointTensor& tensor, const TensorRef& ref);
Result<TensorValues<int64_t>> ReadIntegerPart(const CheckpointTensor& tensor, const TensorRef& ref);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_NETWORK_TENSOR_REF_H_

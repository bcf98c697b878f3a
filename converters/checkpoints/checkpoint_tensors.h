// A checkpoint's named tensors, from any container: names and shapes at once, values on demand
// through functions. Families map these tensors to a model's blocks.
#ifndef KINGLET_CONVERTERS_CHECKPOINTS_CHECKPOINT_TENSORS_H_
#define KINGLET_CONVERTERS_CHECKPOINTS_CHECKPOINT_TENSORS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "converters/checkpoints/elements.h"
#include "kinglet/status.h"

namespace kinglet {

struct CheckpointTensor {
  std::string name;
  std::vector<uint64_t> shape;                         // empty: a scalar
  std::function<Result<std::vector<float>>()> values;  // row-major
  // The entries as exact integers (float32 is exact up to 2^24). Returns an error for a tensor of a
  // float type. Empty: the tensor has no integers.
  std::function<Result<std::vector<int64_t>>()> integers = {};
  // A name of the bytes in the file: tensors of equal shape and `place` are one tensor. Empty:
  // unknown.
  std::string place = {};
  // The rows [first, first + count) of a matrix, or those entries of a vector, without reading the
  // others. Empty: only all values can be read. REQUIRES: the range lies in shape[0].
  std::function<Result<std::vector<float>>(uint64_t first, uint64_t count)> rows = {};
  // A table that a recipe puts into a family's network (converters/recipe/recipe_family.h): the
  // recipe's name for it, and the checkpoint's own tensor of that name, if it has one. Empty: a
  // tensor of the checkpoint.
  std::string made = {};
  std::shared_ptr<const CheckpointTensor> replaced = {};
  // Whether a family may leave the tensor unclaimed, because the recipe reads it.
  bool spare = false;
  // Whether it stands for a bias that the network lacks (a recipe's "zeros"): of any shape.
  bool is_zeros = false;
  // Of the entries in the file; nullopt if unknown or computed.
  std::optional<ElementType> type = {};
};
// In the file's order; names are unique.
using CheckpointTensors = std::vector<CheckpointTensor>;

bool HasTensor(std::span<const CheckpointTensor> weights, std::string_view name);
// Whether any name starts with `prefix`.
bool HasTensorUnder(std::span<const CheckpointTensor> weights, std::string_view prefix);

// A tensor whose entries are a view of elements in a file.
CheckpointTensor StoredTensor(std::string name, StoredElements elements, StridedView view);

// The tensor's values, all finite. Errors: KINGLET_INVALID_CHECKPOINT, naming the tensor and the
// index of the entry that is not finite; those of the tensor's `values`.
Result<std::vector<float>> ReadFinite(const CheckpointTensor& tensor);

// Like ReadFinite, for the rows [first, first + count) (CheckpointTensor::rows).
Result<std::vector<float>> ReadFiniteRows(const CheckpointTensor& tensor, uint64_t first,
                                          uint64_t count);

// The transpose [columns, rows] of a matrix. Reads the tensor in parts, so that memory holds the
// matrix once and an eighth of it twice. REQUIRES: the shape has two dimensions.
Result<std::vector<float>> ReadFiniteTransposed(const CheckpointTensor& tensor);

// Whether two tensors of a checkpoint are one (tied) parameter: they have the same `place`, or
// equal values. A table that a recipe makes is never tied. Compares 128-bit digests of the values,
// so that memory holds one tensor at a time. Errors: those of ReadFinite.
Result<bool> SameParameter(const CheckpointTensor& a, const CheckpointTensor& b);
// Refuses two tensors that are not one parameter (`same`, from SameParameter) although a true
// `option` of the checkpoint ties them. Tables that a recipe makes may differ. Errors:
// KINGLET_INVALID_CHECKPOINT.
Status CheckStatedTie(const std::string& option, const CheckpointTensor& embedding,
                      const CheckpointTensor& output, bool same);

// The values of a tensor of codes, indices or counts. Errors: KINGLET_INVALID_CHECKPOINT, also for
// a tensor of a float type; those of the tensor's `integers`.
Result<std::vector<int64_t>> ReadIntegers(const CheckpointTensor& tensor);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_CHECKPOINTS_CHECKPOINT_TENSORS_H_

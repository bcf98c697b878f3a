// Reads the tensors of a checkpoint that a recipe refers to.
#ifndef KINGLET_CONVERTERS_RECIPE_RECIPE_TENSORS_H_
#define KINGLET_CONVERTERS_RECIPE_RECIPE_TENSORS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "converters/checkpoints/checkpoint_tensors.h"
#include "converters/recipe/recipe.h"
#include "format/encoding.h"
#include "kinglet/status.h"

namespace kinglet {

template <class T>
struct TensorValues {
  Shape shape;
  std::vector<T> values;  // row-major
};

// KINGLET_INVALID_CHECKPOINT, "checkpoint: tensor NAME: expected .., found ..".
Status RefuseTensor(const TensorRef& ref, const std::string& expected, const std::string& found);

// Whether the recipe excludes a tensor of this name on purpose.
bool LeavesOut(const Recipe& recipe, std::string_view name);

// Refuses a square matrix whose reference does not state its orientation: frameworks store
// [outputs, inputs] or [inputs, outputs], and both fit. `shape` is the referenced part's.
Status CheckOriented(const TensorRef& ref, const Shape& shape);

class RecipeTensors {
 public:
  // REQUIRES: the weights outlive the object.
  explicit RecipeTensors(std::span<const CheckpointTensor> weights);

  // Refuses names that the checkpoint lacks and tensors that neither a name nor a pattern of
  // `unused` covers, all in one message (KINGLET_INVALID_CHECKPOINT).
  Status CheckNames(const Recipe& recipe) const;

  // For a recipe's tables in a family's network. Refuses names that the weights lack, names that
  // two weights have, and weights from index `extra` on (which are not the family's) that neither a
  // name nor a pattern of `unused` covers.
  Status CheckTableNames(const Recipe& recipe, size_t extra) const;

  // The tensor, or the part of it that the reference selects. Errors: KINGLET_INVALID_CHECKPOINT
  // naming the tensor, for floats that are not finite and ranges that are outside it.
  Result<TensorValues<float>> Read(const TensorRef& ref) const;
  Result<TensorValues<int64_t>> ReadIntegers(const TensorRef& ref) const;
  // The part's shape now, its values when `read` is called. `read` owns what it needs.
  struct Deferred {
    Shape shape;
    std::function<Result<std::vector<float>>()> read;
  };
  Result<Deferred> Defer(const TensorRef& ref) const;
  // Like Read, and refuses any shape but `shape`.
  Result<std::vector<float>> Read(const TensorRef& ref, const Shape& shape) const;

 private:
  Status CheckUnique() const;
  Result<const CheckpointTensor*> Find(const TensorRef& ref) const;

  std::span<const CheckpointTensor> weights_;
  std::unordered_map<std::string_view, const CheckpointTensor*> by_name_;
};

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_RECIPE_RECIPE_TENSORS_H_

// A recipe's references read from a checkpoint.
#ifndef KINGLET_CONVERTERS_RECIPE_RECIPE_TENSORS_H_
#define KINGLET_CONVERTERS_RECIPE_RECIPE_TENSORS_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "converters/recipe/recipe.h"
#include "converters/sources/source_weights.h"
#include "format/encoding.h"
#include "kinglet/status.h"

namespace kinglet {

template <class T>
struct TensorValues {
  Shape shape;
  std::vector<T> values;  // row-major
};

// KINGLET_INVALID_CHECKPOINT naming the tensor.
Status RefuseTensor(const TensorRef& ref, const std::string& expected, const std::string& found);

class RecipeTensors {
 public:
  // REQUIRES: the weights outlive it.
  explicit RecipeTensors(std::span<const SourceTensor> weights);

  // Every name that is missing, and every tensor that no name and no pattern of `unused` covers, in
  // one line: KINGLET_INVALID_CHECKPOINT.
  Status CheckNames(const Recipe& recipe) const;

  // The part that the reference means. Floats must be finite. Errors: KINGLET_INVALID_CHECKPOINT
  // naming the tensor, also for a range outside it.
  Result<TensorValues<float>> Read(const TensorRef& ref) const;
  Result<TensorValues<int64_t>> ReadIntegers(const TensorRef& ref) const;
  // The part's shape, and its values for whoever asks later; `read` owns what it needs.
  struct Deferred {
    Shape shape;
    std::function<Result<std::vector<float>>()> read;
  };
  Result<Deferred> Defer(const TensorRef& ref) const;
  // The same, of this shape.
  Result<std::vector<float>> Read(const TensorRef& ref, const Shape& shape) const;

 private:
  Result<const SourceTensor*> Find(const TensorRef& ref) const;

  std::span<const SourceTensor> weights_;
  std::unordered_map<std::string_view, const SourceTensor*> by_name_;
};

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_RECIPE_RECIPE_TENSORS_H_

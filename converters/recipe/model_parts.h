// The tensors of a model that a recipe describes, added one by one. Blocks refer to them by id.
#ifndef KINGLET_CONVERTERS_RECIPE_MODEL_PARTS_H_
#define KINGLET_CONVERTERS_RECIPE_MODEL_PARTS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "converters/checkpoints/checkpoint_tensors.h"
#include "converters/families/families.h"
#include "converters/recipe/recipe.h"
#include "converters/recipe/recipe_tensors.h"
#include "converters/recipe/recurrent_gates.h"
#include "kinglet/status.h"

namespace kinglet {

// KINGLET_INVALID_CHECKPOINT, "recipe: WHERE: expected .., found ..".
Status RefuseModel(const std::string& where, const std::string& expected, const std::string& found);

// Errors of all functions: KINGLET_INVALID_CHECKPOINT naming the part of the recipe or the
// checkpoint's tensor.
class ModelParts {
 public:
  // REQUIRES: the weights outlive the object; threads >= 1.
  ModelParts(std::span<const CheckpointTensor> weights, size_t threads)
      : tensors_(weights), threads_(threads) {}

  const RecipeTensors& tensors() const { return tensors_; }

  // How passes treat a tensor: tables and matrices are pruned and quantised, vectors are quantised,
  // and what is kept (the parameters of norms, positions) stays as it is.
  enum class Use : uint8_t { kTable, kMatrix, kVector, kKept };

  TensorId AddTensor(std::string name, Shape shape, decltype(EncodedTensor::values) values,
                     Use use);
  // A tensor whose values are read later.
  using Read = std::function<Result<std::vector<float>>()>;
  TensorId AddDeferred(std::string name, Shape shape, Read read, Use use);
  // A tensor of the checkpoint as it is, or changed: a table or a matrix, which has to be oriented
  // (CheckOriented), and for other uses a vector. Its values are read later, and a tensor that is
  // named twice is stored once.
  Result<TensorId> AddRef(const std::string& name, const TensorRef& ref, Use use,
                          const GateChange& change = {});
  Result<std::optional<TensorId>> AddOptionalRef(const std::string& name,
                                                 const std::optional<TensorRef>& ref, Use use,
                                                 const GateChange& change = {});
  // Like AddRef, for a tensor of any shape that has as many entries as `shape`, with which it is
  // stored.
  Result<TensorId> AddRefAs(const std::string& name, const TensorRef& ref, const Shape& shape,
                            Use use);

  struct AddedTable {
    TensorId id;
    std::optional<TensorId> projection;  // [width, columns], of KD codes with a dense layer
    uint32_t words;
  };
  // `folded`: a projection of the table's own is multiplied into its codebook, because the block
  // that reads the table has no projection, or another one.
  Result<AddedTable> AddTable(const std::string& name, const TableRecipe& recipe, bool folded);

  const Shape& ShapeOf(TensorId id) const { return model.draft.tensors[id].shape; }
  static Status CheckWords(const std::string& where, uint64_t words);

  // Returns the model. Call last.
  LoadedModel Finish();

  LoadedModel model;

 private:
  Result<AddedTable> CheckedTable(const std::string& name, TensorId id,
                                  std::optional<TensorId> projection) const;
  // The tensor of the model that stores this part of the checkpoint already; nullopt if there is
  // none.
  std::optional<TensorId> Known(const TensorRef& ref, const Shape& shape,
                                const std::string& change) const;

  const RecipeTensors tensors_;
  size_t threads_;
  std::unordered_multimap<std::string, std::pair<TensorRef, TensorId>>
      added_;  // by name and change
  std::unordered_map<TensorId, Read> readers_;
};

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_RECIPE_MODEL_PARTS_H_

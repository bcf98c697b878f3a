// Makes a model from a checkpoint's tensors for a family, which claims tensors by name and shape.
// All faults are reported together; values are read last.
#ifndef KINGLET_CONVERTERS_FAMILIES_DRAFT_BUILDER_H_
#define KINGLET_CONVERTERS_FAMILIES_DRAFT_BUILDER_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "converters/checkpoints/checkpoint_tensors.h"
#include "converters/families/families.h"
#include "converters/passes/coded_table.h"
#include "format/encoding.h"
#include "kinglet/status.h"

namespace kinglet {

// What passes do with a tensor by default.
enum class Role : uint8_t {
  kKept,        // stays float32: layer norms, positions
  kQuantised,   // is quantised
  kPrunedAlso,  // is quantised and pruned
};

class DraftBuilder {
 public:
  // Where a part of a checkpoint's tensor begins.
  struct Origin {
    uint64_t row = 0, column = 0;
  };

  // REQUIRES: the weights outlive the builder.
  explicit DraftBuilder(std::span<const CheckpointTensor> weights);

  bool Has(std::string_view name) const { return by_name_.contains(name); }
  bool Claimed(std::string_view name) const { return claimed_.contains(name); }
  // The checkpoint's tensor, without claiming it; nullptr if there is none.
  const CheckpointTensor* Find(std::string_view name) const;

  // Returns the tensor of this name and shape, or nullptr. Notes a wrong shape, and a missing
  // tensor if it is required.
  const CheckpointTensor* Claim(const std::string& name, const Shape& shape, bool required = true);
  // Like Claim if the shape is known, otherwise like ClaimUnshaped.
  const CheckpointTensor* ClaimIf(bool known, const std::string& name, const Shape& shape) {
    return known ? Claim(name, shape) : ClaimUnshaped(name);
  }
  // The tensor of this name, with any shape.
  const CheckpointTensor* ClaimUnshaped(const std::string& name, bool required = true);
  // Excludes the checkpoint's tensor of this name, if there is one: no block reads it.
  void RemoveExcluded(const std::string& name);
  // Whether a recipe makes the tensor of this name: a table, or an entire input.
  bool IsMade(std::string_view name) const;
  // The tensor for a softmax that shares `inward` with the embedding: `inward`, or the checkpoint's
  // tensor of its name if a recipe makes the embedding's. Notes a shape that differs.
  const CheckpointTensor* ForOutput(const CheckpointTensor* inward);
  // Marks the checkpoint's tensors of these names as unused, because a recipe makes the input.
  // Names that the checkpoint lacks are ignored. The user gets one note.
  void MarkUnused(const std::vector<std::string>& names);
  // Notes that the tensor's shape is not `expected`.
  void NoteMisshaped(const CheckpointTensor& tensor, const std::string& expected);

  // Adds a tensor to the draft, with the values of `tensor` from `origin` on. `tensor` may be
  // nullptr: a missing tensor has an id too, and its fault ends the conversion before the id is
  // used.
  TensorId Add(const std::string& name, const Shape& shape, Role role,
               const CheckpointTensor* tensor, Origin origin);
  TensorId Add(const std::string& name, const Shape& shape, Role role,
               const CheckpointTensor* tensor) {
    return Add(name, shape, role, tensor, Origin{});
  }
  // Adds the entire tensor under its own name.
  TensorId AddWhole(const CheckpointTensor& tensor, Role role) {
    return Add(tensor.name, tensor.shape, role, &tensor);
  }
  // Claims the tensor of this name and adds it.
  TensorId Add(const std::string& name, const Shape& shape, Role role) {
    return Add(name, shape, role, Claim(name, shape));
  }

  // Adds a tensor whose values `make` computes from all values of `tensor`.
  using Make = std::function<Result<std::vector<float>>(std::vector<float> values)>;
  TensorId AddMade(const std::string& name, const Shape& shape, Role role,
                   const CheckpointTensor* tensor, Make make);

  // Like AddMade above, with the concatenated values of several tensors. REQUIRES: at least one
  // tensor.
  TensorId AddMade(const std::string& name, const Shape& shape, Role role,
                   const std::vector<const CheckpointTensor*>& tensors, Make make);

  // Adds the transpose of a matrix that is another tensor's parameter; `shape` is the result's.
  TensorId AddTransposed(const std::string& name, const Shape& shape, Role role,
                         const CheckpointTensor* tensor);
  // Adds a vector that the framework computes and does not store; the vector stays float32.
  TensorId AddComputed(const std::string& name, std::vector<float> values);
  // Like AddComputed above, for any shape. REQUIRES: the shape has as many entries as there are
  // values.
  TensorId AddComputed(const std::string& name, const Shape& shape, std::vector<float> values);
  // Adds a coded table and its codebook, NAME.codebook, which passes prune and quantise.
  TensorId AddCoded(const std::string& name, CodedTable table);
  // Marks a tensor whose entries are not parameters of its own (EncodedTensor::derived).
  void MarkDerived(TensorId id) { model.draft.tensors[id].derived = true; }

  // Refuses missing, unused and mis-shaped tensors, and claimed ones that are not the weight with
  // which the network computes (DerivedWeights), all in one message: KINGLET_INVALID_CHECKPOINT.
  // `network` names the network whose tensors were expected.
  Status CheckNames(const std::string& network) const;
  // Sets LoadedModel::read, which reads the tensors later, one by one. Call last. REQUIRES:
  // CheckNames found nothing; each Make owns what it needs, because it may outlive the builder.
  void DeferValues();
  // Reads all tensors now.
  Status ReadValues();

  LoadedModel model;

 private:
  struct Input {
    const CheckpointTensor* tensor;  // nullptr: computed
    Origin origin;
    Make make;  // empty: the values from the origin on
  };
  class Reader;

  // Faults of claimed weights that are not what the network computes with (DerivedWeights).
  std::vector<std::string> DerivedFaults() const;
  TensorId AddInput(const std::string& name, const Shape& shape, Role role, Input input);

  std::span<const CheckpointTensor> order_;
  std::unordered_map<std::string_view, const CheckpointTensor*> by_name_;
  std::unordered_set<std::string_view> claimed_, excluded_;
  std::vector<std::string> missing_, misshaped_;
  std::vector<Input> inputs_;  // by tensor id
};

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_DRAFT_BUILDER_H_

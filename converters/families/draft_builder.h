// How families make a model of a checkpoint's tensors. They claim tensors by name and shape; all
// faults are reported together; values are read last.
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

  // REQUIRES: the weights outlive it.
  explicit DraftBuilder(std::span<const CheckpointTensor> weights);

  bool Has(std::string_view name) const { return by_name_.contains(name); }
  bool Claimed(std::string_view name) const { return claimed_.contains(name); }
  // The checkpoint's tensor, without claiming it; null if there is none.
  const CheckpointTensor* Find(std::string_view name) const;

  // The tensor of this name and shape. Otherwise null, and the fault is noted; only a required
  // tensor may not be missing.
  const CheckpointTensor* Claim(const std::string& name, const Shape& shape, bool required = true);
  // As Claim if the shape is known, otherwise as ClaimUnshaped.
  const CheckpointTensor* ClaimIf(bool known, const std::string& name, const Shape& shape) {
    return known ? Claim(name, shape) : ClaimUnshaped(name);
  }
  // The tensor of this name, with any shape.
  const CheckpointTensor* ClaimUnshaped(const std::string& name, bool required = true);
  // Leaves the checkpoint's tensor of this name out, if there is one: nothing reads it.
  void RemoveExcluded(const std::string& name);
  // Whether a recipe makes a tensor of this name: a table, or a whole input.
  bool IsMade(std::string_view name) const;
  // What a softmax reads that shares this tensor with the embedding: the tensor, or the
  // checkpoint's own one where a recipe makes the embedding's. Notes a shape that differs.
  const CheckpointTensor* ForOutput(const CheckpointTensor* inward);
  // Leaves the checkpoint's tensors of these names out, those that there are, because a recipe
  // makes what they were for. The user gets one note.
  void MarkUnused(const std::vector<std::string>& names);
  // Notes that the tensor's shape is not `expected`.
  void NoteMisshaped(const CheckpointTensor& tensor, const std::string& expected);

  // Adds a tensor to the draft, with the values of `source` from `origin` on. `source` may be null:
  // a missing tensor has an id too, and its fault ends the conversion before anything uses the id.
  TensorId Add(const std::string& name, const Shape& shape, Role role,
               const CheckpointTensor* source, Origin origin);
  TensorId Add(const std::string& name, const Shape& shape, Role role,
               const CheckpointTensor* source) {
    return Add(name, shape, role, source, Origin{});
  }
  // Adds the whole tensor under its own name.
  TensorId AddWhole(const CheckpointTensor& tensor, Role role) {
    return Add(tensor.name, tensor.shape, role, &tensor);
  }
  // Claims the tensor of this name and adds it.
  TensorId Add(const std::string& name, const Shape& shape, Role role) {
    return Add(name, shape, role, Claim(name, shape));
  }

  // Adds a tensor whose values `make` computes from all values of the source.
  using Make = std::function<Result<std::vector<float>>(std::vector<float> values)>;
  TensorId AddMade(const std::string& name, const Shape& shape, Role role,
                   const CheckpointTensor* source, Make make);

  // The same from the values of several sources, one after the other. REQUIRES: at least one.
  TensorId AddMade(const std::string& name, const Shape& shape, Role role,
                   const std::vector<const CheckpointTensor*>& sources, Make make);

  // Adds the transpose of a matrix that is another tensor's parameter; `shape` is the result's.
  TensorId AddTransposed(const std::string& name, const Shape& shape, Role role,
                         const CheckpointTensor* source);
  // Adds a vector that the framework computes and does not store. It stays float32.
  TensorId AddComputed(const std::string& name, std::vector<float> values);
  // The same of any shape. REQUIRES: it has as many entries as there are values.
  TensorId AddComputed(const std::string& name, const Shape& shape, std::vector<float> values);
  // Adds a coded table and its codebook, NAME.codebook, which passes prune and quantise.
  TensorId AddCoded(const std::string& name, CodedTable table);
  // Marks a tensor whose entries are not parameters of its own (EncodedTensor::derived).
  void MarkDerived(TensorId id) { model.draft.tensors[id].derived = true; }

  // Refuses missing, unused and mis-shaped tensors, and claimed ones that are not the weight which
  // their network computes with (DerivedWeights), all in one message: KINGLET_INVALID_CHECKPOINT.
  // `network` names the network whose tensors were expected.
  Status CheckNames(const std::string& network) const;
  // Sets LoadedModel::read, which reads the tensors one by one, later. The last call. REQUIRES:
  // CheckNames found nothing; each Make owns what it needs, as it may run after the builder is
  // gone.
  void DeferValues();
  // Reads all tensors now.
  Status ReadValues();

  LoadedModel model;

 private:
  struct Source {
    const CheckpointTensor* tensor;  // null: computed
    Origin origin;
    Make make;  // empty: the values from the origin on
  };
  class Reader;

  // The weights whose tensors do not say themselves what the network computes with, where it was
  // asked for them.
  std::vector<std::string> DerivedFaults() const;
  TensorId AddSource(const std::string& name, const Shape& shape, Role role, Source source);

  std::span<const CheckpointTensor> order_;
  std::unordered_map<std::string_view, const CheckpointTensor*> by_name_;
  std::unordered_set<std::string_view> claimed_, excluded_;
  std::vector<std::string> missing_, misshaped_;
  std::vector<Source> sources_;  // by tensor id
};

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_DRAFT_BUILDER_H_

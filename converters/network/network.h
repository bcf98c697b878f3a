// A network of a checkpoint: blocks (format/blocks.h) whose tensors are references to those of the
// checkpoint. A family or a recipe describes it: first it claims tensors by name and shape, then it
// adds them to the model, whole or in part, joined or changed. All faults of names and shapes are
// reported together, and values are read last.
#ifndef KINGLET_CONVERTERS_NETWORK_NETWORK_H_
#define KINGLET_CONVERTERS_NETWORK_NETWORK_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "converters/checkpoints/checkpoint_tensors.h"
#include "converters/network/change.h"
#include "converters/network/loaded_model.h"
#include "converters/network/tensor_ref.h"
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

// Whether a name is that of a layer's bias: "decoder.bias", "rnn.bias_ih_l0".
bool IsBias(std::string_view name);

// What a network found of the names that it expects in a checkpoint.
struct NameReport {
  bool compared = false;  // false: another fault came first
  std::vector<std::string> missing, unused;
};

class Network {
 public:
  // Where a part of a checkpoint's tensor begins.
  struct Origin {
    uint64_t row = 0, column = 0;
  };

  // REQUIRES: the weights outlive the network. With a report, only the checkpoint's names are
  // compared: the network reads no table, and CheckNames fills the report and refuses.
  explicit Network(std::span<const CheckpointTensor> weights, NameReport* report = nullptr);

  // --- the checkpoint ---

  bool Has(std::string_view name) const { return by_name_.contains(name); }
  // The checkpoint's tensor, without claiming it; nullptr if there is none.
  const CheckpointTensor* Find(std::string_view name) const;
  // A size of the tensor, which Claim checks later; 0 if the tensor lacks it or it is too large.
  uint32_t Dimension(std::string_view name, size_t axis) const;
  bool Claimed(std::string_view name) const { return claimed_.contains(name); }

  // Returns the tensor of this name and shape, or nullptr. Notes a wrong shape, and a missing
  // tensor if it is required. A size of 0 is unknown, because the tensor that tells it is missing
  // or faulty: any shape fits. A bias that a recipe lists as zeros gets the shape.
  const CheckpointTensor* Claim(const std::string& name, const Shape& shape, bool required = true);
  // The tensor of this name, with any shape.
  const CheckpointTensor* ClaimUnshaped(const std::string& name, bool required = true);
  // Notes that both names are one parameter of this network: where the checkpoint has one of them,
  // the other one names its tensor too. Where a recipe makes that tensor, the other name is that of
  // the checkpoint's own. Returns whether a name was added.
  // `is_stated`: an option or the network's structure ties them, not a default.
  bool Share(const std::string& first, const std::string& second, bool is_stated = true);
  // Notes that an option may tie both names. If the checkpoint has one of them, the refusal of the
  // other one tells `how` the user states the tie.
  void MayShare(const std::string& first, const std::string& second, const std::string& how);
  // Excludes the checkpoint's tensor of this name, if there is one: no block reads it.
  void RemoveExcluded(const std::string& name);
  // Notes that the tensor's shape is not `expected`.
  void NoteMisshaped(const CheckpointTensor& tensor, const std::string& expected);
  // A tensor that is computed from the checkpoint's, as if the checkpoint had it. The network owns
  // it.
  const CheckpointTensor& Own(CheckpointTensor tensor) {
    return owned_.emplace_back(std::move(tensor));
  }

  // Whether two claimed tensors are one parameter, by their values. If so, both are stored once.
  // With a non-empty `option`, a true option of the checkpoint that ties both, other values are
  // refused (CheckStatedTie). Errors: those of SameParameter.
  Result<bool> Tie(const CheckpointTensor& first, const CheckpointTensor& second,
                   const std::string& option = "");

  // --- tables that a recipe makes (CheckpointTensor::made) ---

  // Whether a recipe makes the tensor of this name: a table, or an entire input.
  bool IsMade(std::string_view name) const;
  // Marks the checkpoint's tensors of these names as unused, because a recipe makes the input.
  // Names that the checkpoint lacks are ignored. The user gets one note.
  void MarkUnused(const std::vector<std::string>& names);

  // --- the model's tensors ---
  // A tensor that is added twice, with equal parts and changes, is stored once, under its first
  // name. `tensor` may be nullptr: a missing tensor has an id too, and its fault ends the
  // conversion before the id is used.

  // Claims the tensor of this name and adds it.
  TensorId Add(const std::string& name, const Shape& shape, Role role) {
    return Add(name, shape, role, Claim(name, shape));
  }
  // Like Add above, with the values changed in place.
  TensorId AddChanged(const std::string& name, const Shape& shape, Role role,
                      const Change& change) {
    return Add(name, shape, role, Claim(name, shape), change);
  }
  // Adds the part of `tensor` of this shape that begins at `origin`.
  TensorId Add(const std::string& name, const Shape& shape, Role role,
               const CheckpointTensor* tensor, Origin origin);
  TensorId Add(const std::string& name, const Shape& shape, Role role,
               const CheckpointTensor* tensor) {
    return Add(name, shape, role, tensor, Origin{});
  }
  // Adds what the change makes of all values of `tensor`.
  TensorId Add(const std::string& name, const Shape& shape, Role role,
               const CheckpointTensor* tensor, const Change& change) {
    return AddJoined(name, shape, role, {tensor}, change);
  }
  // Adds the entire tensor under its own name.
  TensorId AddWhole(const CheckpointTensor& tensor, Role role) {
    return Add(tensor.name, tensor.shape, role, &tensor);
  }
  // Adds what the change makes of the values of all tensors, one after the other.
  TensorId AddJoined(const std::string& name, const Shape& shape, Role role,
                     const std::vector<const CheckpointTensor*>& tensors, const Change& change);
  // Adds what the change makes of the transpose of a matrix; `shape` is the result's.
  TensorId AddTransposed(const std::string& name, const Shape& shape, Role role,
                         const CheckpointTensor* tensor, const Change& change = {});
  // Adds a tensor whose values are known.
  TensorId AddValues(const std::string& name, const Shape& shape,
                     decltype(EncodedTensor::values) values, Role role);
  // Adds a tensor that the framework computes and does not store; it stays float32.
  TensorId AddComputed(const std::string& name, const Shape& shape, Change made);
  // Adds a coded table and its codebook, NAME.codebook, which passes prune and quantise.
  TensorId AddCoded(const std::string& name, CodedTable table, std::optional<uint64_t> seed = {});
  // Marks a tensor whose entries are not parameters of its own (EncodedTensor::derived).
  void MarkDerived(TensorId id) { model.draft.tensors[id].derived = true; }
  const Shape& ShapeOf(TensorId id) const { return model.draft.tensors[id].shape; }

  // --- references of a recipe, whose names are checked first ---
  // Errors: KINGLET_INVALID_CHECKPOINT naming the tensor or the part of the recipe.

  // The shape of the part, and its values.
  Result<Shape> ShapeOf(const TensorRef& ref) const;
  Result<TensorValues<float>> Read(const TensorRef& ref) const;
  // Like Read, and refuses any shape but `shape`.
  Result<std::vector<float>> Read(const TensorRef& ref, const Shape& shape) const;
  Result<TensorValues<int64_t>> ReadIntegers(const TensorRef& ref) const;

  // What the part has to be: a table or a matrix, which has to be oriented (CheckOriented) and is
  // pruned and quantised, a vector, which is quantised, or a vector that stays float32.
  enum class Use : uint8_t { kTable, kMatrix, kVector, kKept };
  Result<TensorId> AddRef(const std::string& name, const TensorRef& ref, Use use,
                          const Change& change = {});
  Result<std::optional<TensorId>> AddOptionalRef(const std::string& name,
                                                 const std::optional<TensorRef>& ref, Use use,
                                                 const Change& change = {});
  // Adds what the change makes of the values of all parts, one after the other.
  Result<TensorId> AddJoinedRefs(const std::string& name, const std::vector<TensorRef>& refs,
                                 const Shape& shape, Role role, const Change& change);

  // --- the end ---

  // Refuses missing, unused and mis-shaped tensors, and claimed ones that are not the weight with
  // which the network computes (DerivedWeights), all in one message: KINGLET_INVALID_CHECKPOINT.
  // `network` names the network whose tensors were expected.
  Status CheckNames(const std::string& network) const;
  // The model, which reads its tensors later, one by one (LoadedModel::read). Call last. REQUIRES:
  // CheckNames found nothing.
  LoadedModel Finish();
  // CheckNames, then Finish.
  Result<LoadedModel> Build(const std::string& network);

  LoadedModel model;

 private:
  // What makes a tensor of the model (LoadedModel::Origin); a missing tensor has no parts.
  struct Part {
    const CheckpointTensor* tensor;
    TensorRef ref;
  };
  struct Reference {
    std::vector<Part> parts;
    Change change;
  };
  class Reader;

  Result<const CheckpointTensor*> Find(const TensorRef& ref) const;
  // Faults of claimed weights that are not what the network computes with (DerivedWeights).
  std::vector<std::string> DerivedFaults() const;
  TensorId AddReference(const std::string& name, const Shape& shape, Role role,
                        Reference reference);

  // The tensor of two names of which the checkpoint has one, and the other name.
  std::optional<std::pair<const CheckpointTensor*, std::string>> OnlyOne(
      const std::string& first, const std::string& second) const;
  // The names that no block reads.
  std::vector<std::string> Unused() const;

  std::span<const CheckpointTensor> order_;
  NameReport* const report_;
  std::unordered_map<std::string_view, const CheckpointTensor*> by_name_;
  std::unordered_set<std::string_view> claimed_, excluded_;
  std::vector<std::string> doubled_, missing_, misshaped_;
  std::vector<std::string> ties_to_state_;
  std::vector<std::string> assumed_;  // shared by default
  std::deque<CheckpointTensor> owned_;
  std::deque<std::string> shared_names_;
  // Of tied tensors: each one's first.
  std::unordered_map<const CheckpointTensor*, const CheckpointTensor*> tied_;
  std::vector<Reference> references_;                // by tensor id
  std::unordered_map<std::string, TensorId> added_;  // by parts, change and shape
};

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_NETWORK_NETWORK_H_

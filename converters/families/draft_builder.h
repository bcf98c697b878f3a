// What families share on the way from a checkpoint's tensors to a draft: names and shapes are
// claimed first, their faults reported all together, and values read last.
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

#include "converters/families/families.h"
#include "converters/sources/source_weights.h"
#include "format/encoding.h"
#include "kinglet/status.h"

namespace kinglet {

// What passes may do with a tensor.
enum class Role : uint8_t {
  kKept,        // always float32: layer norms, positions
  kQuantised,   // covered by the quantiser
  kPrunedAlso,  // and by the pruner
};

class DraftBuilder {
 public:
  // The first entry of a draft's tensor in the checkpoint's.
  struct Origin {
    uint64_t row = 0, column = 0;
  };

  // REQUIRES: the weights outlive it.
  explicit DraftBuilder(std::span<const SourceTensor> weights);

  bool Has(std::string_view name) const { return by_name_.contains(name); }
  bool Claimed(std::string_view name) const { return claimed_.contains(name); }
  // The checkpoint's tensor, without claiming it; null if there is none.
  const SourceTensor* Find(std::string_view name) const;

  // The tensor of this name and shape; otherwise null and the fault is noted. One that is not
  // required is not missed.
  const SourceTensor* Claim(const std::string& name, const Shape& shape, bool required = true);
  // The same where the shape is known, and otherwise whatever the shape.
  const SourceTensor* ClaimIf(bool known, const std::string& name, const Shape& shape) {
    return known ? Claim(name, shape) : ClaimUnshaped(name);
  }
  // The tensor of this name, whatever its shape.
  const SourceTensor* ClaimUnshaped(const std::string& name, bool required = true);
  // The shape of a tensor is not the one that `expected` describes.
  void NoteMisshaped(const SourceTensor& tensor, const std::string& expected);

  // A tensor of the draft. Ids are given out even for tensors that turn out to be missing: the
  // faults end the loading before anyone looks at them.
  TensorId Add(const std::string& name, const Shape& shape, Role role, const SourceTensor* source,
               Origin origin);
  TensorId Add(const std::string& name, const Shape& shape, Role role, const SourceTensor* source) {
    return Add(name, shape, role, source, Origin{});
  }
  // All of a tensor under its own name.
  TensorId AddWhole(const SourceTensor& tensor, Role role) {
    return Add(tensor.name, tensor.shape, role, &tensor);
  }
  // The same, claimed under its own name.
  TensorId Add(const std::string& name, const Shape& shape, Role role) {
    return Add(name, shape, role, Claim(name, shape));
  }

  // A tensor whose values `make` makes of all those of the source, as many as the shape has.
  using Make = std::function<Result<std::vector<float>>(std::vector<float> values)>;
  TensorId AddMade(const std::string& name, const Shape& shape, Role role,
                   const SourceTensor* source, Make make);

  // The same of the values of several sources, one after the other; at least one.
  TensorId AddMade(const std::string& name, const Shape& shape, Role role,
                   const std::vector<const SourceTensor*>& sources, Make make);

  // The transpose of a matrix that is a parameter elsewhere; `shape` is the result's.
  TensorId AddTransposed(const std::string& name, const Shape& shape, Role role,
                         const SourceTensor* source);
  // What the training code computes rather than stores: a vector, always float32.
  TensorId AddComputed(const std::string& name, std::vector<float> values);
  // What the tensor holds is no parameter of its own (EncodedTensor::derived).
  void MarkDerived(TensorId id) { model.draft.tensors[id].derived = true; }

  // All missing, unused and mis-shaped tensors in one line: KINGLET_INVALID_CHECKPOINT. `network`
  // says whose tensors were expected.
  Status CheckNames(const std::string& network) const;
  // The draft's tensors are read when someone asks for them (LoadedModel::read). REQUIRES:
  // CheckNames found nothing; what the builder was told to make needs nothing that is gone by then.
  // The last call.
  void DeferValues();
  // Fills them now.
  Status ReadValues();

  LoadedModel model;

 private:
  struct Source {
    const SourceTensor* tensor;  // null: computed
    Origin origin;
    Make make;  // empty: the values from the origin on
  };
  class Reader;

  std::span<const SourceTensor> order_;
  std::unordered_map<std::string_view, const SourceTensor*> by_name_;
  std::unordered_set<std::string_view> claimed_;
  std::vector<std::string> missing_, misshaped_;
  std::vector<Source> sources_;  // by tensor id
};

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_DRAFT_BUILDER_H_

// What becomes of each tensor of a model on its own, whatever the others are: it is read, its
// integers are recovered, its small entries pruned, the rest quantised, and the smaller of its
// forms chosen. Done tensor by tensor while the file is packed, so that memory holds one tensor
// beside the packed ones; or for all at once, where a pass in between needs them all.
#ifndef KINGLET_CONVERTERS_TENSOR_PASSES_H_
#define KINGLET_CONVERTERS_TENSOR_PASSES_H_

#include <cstdint>
#include <optional>

#include "converters/families/families.h"
#include "format/packed_model.h"
#include "kinglet/status.h"

namespace kinglet {

class TensorPasses {
 public:
  struct Options {
    std::optional<double> prune;
    std::optional<int> bits;
  };
  struct Counts {
    uint64_t tensors = 0, parameters = 0;
    uint64_t nonzero_parameters = 0;  // of tensors that are not derived
  };

  // Refers to the model, whose draft may move to PackModel. Its lists of tensors do not change
  // after the first Prepare.
  TensorPasses(const Options& options, LoadedModel& model) : options_(options), model_(model) {}

  // Reads all tensors and recovers their integers, for passes that work on what the checkpoint had.
  Status ReadAll();
  // What of that is not done yet, for one tensor, and its form: PackModel's filler.
  Result<std::optional<RowCodes>> Prepare(TensorId id, EncodedTensor& tensor);

  const Counts& counts() const { return counts_; }  // of what was prepared

 private:
  Status Read(TensorId id, EncodedTensor& tensor);

  Options options_;
  LoadedModel& model_;
  bool read_ = false;
  Counts counts_;
};

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_TENSOR_PASSES_H_

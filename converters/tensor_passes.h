// The passes that change one tensor of a model at a time: its integers are recovered, its small
// entries pruned, the rest quantised, and the smaller stored form chosen. Tensor passes run tensor
// by tensor while the file is packed, so that only one unpacked tensor is in memory. Recipe passes,
// which need all tensors at once, have all of them read before.
#ifndef KINGLET_CONVERTERS_TENSOR_PASSES_H_
#define KINGLET_CONVERTERS_TENSOR_PASSES_H_

#include <cstdint>
#include <optional>
#include <utility>

#include "converters/families/families.h"
#include "converters/passes/input_moments.h"
#include "converters/passes/quantise.h"
#include "format/packed_model.h"
#include "kinglet/status.h"

namespace kinglet {

class TensorPasses {
 public:
  struct Options {
    std::optional<double> prune;  // fraction of zeros, [0, 1); nullopt: no tensor is pruned
    std::optional<int> bits;      // nullopt: no tensor is quantised
    ScaleBy scale_by = ScaleBy::kLargest;
  };
  struct Counts {
    uint64_t tensors = 0, parameters = 0;
    uint64_t nonzero_parameters = 0;  // of tensors that are not derived
  };

  // Keeps a reference to the model. The model's lists of prunable and quantisable tensors must not
  // change once Apply has been called.
  TensorPasses(const Options& options, LoadedModel& model) : options_(options), model_(model) {}

  // Reads all tensors of the draft and recovers their integers; Read then does nothing.
  Status ReadAll();
  // Fills a tensor from the checkpoint, if the model reads its tensors late. In a checkpoint that
  // is quantised already, also recovers the integers of a quantisable tensor.
  Status Read(TensorId id, EncodedTensor& tensor);

  // From now on matrices with moments are rounded with error feedback
  // (converters/passes/error_feedback.h).
  void UseMoments(InputMoments moments) { moments_ = std::move(moments); }

  // Prunes, quantises and counts the tensor, and chooses whether it is stored with a mask. A
  // float32 matrix that is to be quantised keeps its floats; the codes of its rows, which refer to
  // the floats, are returned instead.
  std::optional<RowCodes> Apply(TensorId id, EncodedTensor& tensor);

  const Counts& counts() const { return counts_; }  // of the tensors that Apply was called for

 private:
  bool QuantiseWithMoments(TensorId id, EncodedTensor& tensor) const;

  Options options_;
  LoadedModel& model_;
  InputMoments moments_;
  bool read_ = false;
  Counts counts_;
};

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_TENSOR_PASSES_H_

// How much the mean loss on a text changes when one tensor of a model is pruned, quantised or coded
// and everything else stays (the MicroNet paper, Yan et al. 2020, section 4.2).
//
// Work that is reused: the model is converted once; for a change only the changed tensor is packed
// again, and the other tensors' packed bytes and the vocabulary are the baseline's. Nodes below the
// changed tensor are not run again: their outputs are kept (recorded_context.h). A sparsity that
// the tensor has already is not run.
#ifndef KINGLET_CONVERTERS_PLANNING_SENSITIVITY_H_
#define KINGLET_CONVERTERS_PLANNING_SENSITIVITY_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "converters/planning/recorded_context.h"
#include "converters/planning/tensor_change.h"
#include "format/model_file.h"
#include "format/packed_model.h"
#include "kinglet/status.h"
#include "runtime/model.h"

namespace kinglet {

// Passes the ids of a text to `take`, piece by piece. Called once for each run over the text; may
// be called by several threads at once.
using TokenInput =
    std::function<Status(const std::function<Status(std::span<const uint32_t>)>& take)>;

// The losses of a text in text blocks of kLossBlock scored tokens, so that two runs can be compared
// pair by pair. Each text block takes one double.
inline constexpr uint64_t kLossBlock = 64;
struct TextLoss {
  uint64_t tokens = 0, scored = 0;
  double nll = 0;              // the mean, as `kinglet score` gives it
  std::vector<double> blocks;  // the mean of each text block
  std::vector<uint64_t> bin_counts;
};
// Errors: those of the input and of running the model; KINGLET_INVALID_ARGUMENT for a text without
// a scored token. `progress` is called now and then with the tokens that were done since.
Result<TextLoss> LossOfText(const std::shared_ptr<const Model>& model, const TokenInput& input,
                            const std::function<void(uint64_t)>& progress);
// Like LossOfText; the recorder records what the context's nodes compute.
Result<TextLoss> RecordedLoss(const std::shared_ptr<const Model>& model, const TokenInput& input,
                              const std::function<void(uint64_t)>& progress,
                              ContextRecorder& recorder);
// Like LossOfText, but runs only the nodes that `recorded` lacks. REQUIRES: the same text was
// recorded, from a model with the same nodes.
Result<TextLoss> LossAfter(const RecordedContext& recorded,
                           const std::shared_ptr<const Model>& model, const TokenInput& input,
                           const std::function<void(uint64_t)>& progress);
// The standard error of the difference of two means over the same text, from its text blocks.
double DifferenceError(const TextLoss& a, const TextLoss& b);

// Whether a table of this shape can have the change.
bool TakesTable(const Shape& shape, const TensorChange& change);

struct TensorGroup {
  std::string name;
  std::vector<TensorId> tensors;
};
// The tensors of a group and what is done to each.
struct Trial {
  size_t group = 0;
  TensorChange change;
};

// Operations a token; nullopt where the rules do not count the model.
struct OperationCounts {
  std::optional<double> executed, micronet;
};
OperationCounts CountOperations(const Model& model, const std::vector<uint64_t>& bin_counts);

struct Measurement {
  double nll = 0;
  double standard_error = 0;  // of nll minus the baseline's
  double relative_error = 0;  // of the weights
  uint64_t entries = 0, nonzeros = 0;
  uint64_t bytes = 0;  // of the group in the file, each part filled up to 64 bytes
  OperationCounts operations;
  bool ran = true;  // false: nothing changed
};

class Sensitivity {
 public:
  // REQUIRES: no tensor of the file is released.
  explicit Sensitivity(std::shared_ptr<const ModelFile> file, ScaleBy scale_by = ScaleBy::kLargest)
      : file_(std::move(file)), scale_by_(scale_by) {}

  const ModelFile& file() const { return *file_; }
  // One group for each pattern, or, without patterns, one for each of `names` that is a float32
  // tensor. KINGLET_INVALID_ARGUMENT for a pattern that names no float32 tensor.
  Result<std::vector<TensorGroup>> Groups(const std::vector<std::string>& patterns,
                                          const std::vector<std::string>& names) const;
  // Measures the loss of the unchanged model; to be called before Measure. Keeps what nodes below
  // the changes of these groups compute for Measure, as far as `most_bytes` allow.
  Status MeasureBaseline(const TokenInput& input, std::span<const TensorGroup> groups,
                         const std::function<void(uint64_t)>& progress,
                         uint64_t most_bytes = ContextRecorder::kMostBytes);
  const TextLoss& baseline() const { return baseline_; }
  const OperationCounts& operations() const { return operations_; }
  // Bytes of the tensor's parts in the file, each filled up to the next 64.
  uint64_t BytesOf(const TensorGroup& group) const;
  uint64_t EntriesOf(const TensorGroup& group) const;
  uint64_t NonzerosOf(const TensorGroup& group) const;
  // Whether the model can have the change: codes and ranks are for tables, sparsities for matrices.
  bool Takes(const TensorGroup& group, const TensorChange& change) const;
  // The group's bytes when it is quantised to `bits`. Does not run the model.
  Result<uint64_t> BytesAtBits(const TensorGroup& group, int bits) const;
  // Several threads may call Measure at once.
  Result<Measurement> Measure(const TensorGroup& group, const TensorChange& change,
                              const TokenInput& input,
                              const std::function<void(uint64_t)>& progress) const;

 private:
  EncodedTensor Original(TensorId id) const;

  std::shared_ptr<const ModelFile> file_;
  ScaleBy scale_by_;  // of changes of bits
  TextLoss baseline_;
  OperationCounts operations_;
  std::shared_ptr<const Model> unchanged_;
  std::optional<ContextRecorder> recorder_;  // of unchanged_
};

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PLANNING_SENSITIVITY_H_

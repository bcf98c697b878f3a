#include "converters/tensor_passes.h"

#include <algorithm>
#include <variant>
#include <vector>

#include "converters/checkpoints/refuse_checkpoint.h"
#include "converters/passes/error_feedback.h"
#include "converters/passes/pack.h"
#include "converters/passes/prune.h"
#include "converters/passes/recover.h"
#include "converters/thread_shares.h"

namespace kinglet {
namespace {

bool Contains(const std::vector<TensorId>& ids, TensorId id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

}  // namespace

Status TensorPasses::ReadAll() {
  if (read_) return {};
  std::vector<EncodedTensor>& tensors = model_.draft.tensors;
  for (size_t id = 0; id < tensors.size(); ++id) {
    KINGLET_RETURN_IF_ERROR(Read(static_cast<TensorId>(id), tensors[id]));
  }
  read_ = true;
  return {};
}

Status TensorPasses::Read(TensorId id, EncodedTensor& tensor) {
  if (read_) return {};
  if (model_.read) {
    KINGLET_RETURN_IF_ERROR(WithNextStep(
        model_.read(id, tensor), "give another checkpoint of the training, or replace the value"));
  }
  if (model_.bits && Contains(model_.quantisable, id)) {
    RecoverTensor(*model_.bits, tensor, model_.notes);
  }
  return {};
}

// Quantises the tensor if it is a matrix with moments. Returns whether it is.
bool TensorPasses::QuantiseWithMoments(TensorId id, EncodedTensor& tensor) const {
  const auto moments = moments_.find(id);
  const auto* dense = std::get_if<DenseF32>(&tensor.values);
  if (moments == moments_.end() || dense == nullptr || tensor.shape.size() != 2 ||
      moments->second.width != Cols(tensor.shape)) {
    return false;
  }
  tensor.values =
      QuantiseWithFeedback(dense->values, tensor.shape, *options_.bits, options_.scale_by,
                           moments->second, kFeedbackDamping, MachineThreads());
  return true;
}

std::optional<RowCodes> TensorPasses::Apply(TensorId id, EncodedTensor& tensor) {
  if (options_.prune && Contains(model_.prunable, id)) PruneTensor(*options_.prune, tensor);
  std::optional<RowCodes> rows;
  if (options_.bits && Contains(model_.quantisable, id) && !QuantiseWithMoments(id, tensor)) {
    rows = QuantisedRows(*options_.bits, tensor, options_.scale_by);
    if (!rows) QuantiseTensor(*options_.bits, tensor, options_.scale_by);
  }
  const uint64_t nonzeros = ChooseMask(tensor, rows);
  ++counts_.tensors;
  counts_.parameters += Parameters(tensor);
  if (!tensor.derived) counts_.nonzero_parameters += nonzeros;
  return rows;
}

}  // namespace kinglet

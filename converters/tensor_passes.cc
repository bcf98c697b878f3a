#include "converters/tensor_passes.h"

#include <algorithm>
#include <vector>

#include "converters/passes/pack.h"
#include "converters/passes/prune.h"
#include "converters/passes/quantise.h"
#include "converters/passes/recover.h"

namespace kinglet {
namespace {

bool Contains(const std::vector<TensorId>& ids, TensorId id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

}  // namespace

Status TensorPasses::ReadAll() {
  std::vector<EncodedTensor>& tensors = model_.draft.tensors;
  for (size_t id = 0; id < tensors.size(); ++id) {
    KINGLET_RETURN_IF_ERROR(Read(static_cast<TensorId>(id), tensors[id]));
  }
  read_ = true;
  return {};
}

Status TensorPasses::Read(TensorId id, EncodedTensor& tensor) {
  if (read_) return {};
  if (model_.read) KINGLET_RETURN_IF_ERROR(model_.read(id, tensor));
  if (model_.bits && Contains(model_.quantisable, id)) {
    RecoverTensor(*model_.bits, tensor, model_.notes);
  }
  return {};
}

std::optional<RowCodes> TensorPasses::Apply(TensorId id, EncodedTensor& tensor) {
  if (options_.prune && Contains(model_.prunable, id)) PruneTensor(*options_.prune, tensor);
  std::optional<RowCodes> rows;
  if (options_.bits && Contains(model_.quantisable, id)) {
    rows = QuantisedRows(*options_.bits, tensor);
    if (!rows) QuantiseTensor(*options_.bits, tensor);
  }
  const uint64_t nonzeros = ChooseMask(tensor, rows);
  ++counts_.tensors;
  counts_.parameters += Parameters(tensor);
  if (!tensor.derived) counts_.nonzero_parameters += nonzeros;
  return rows;
}

}  // namespace kinglet

// A training code's named tensors as families see them: names and shapes first, values on demand.
// Where the values come from (a checkpoint file, memory in a test) is behind `read`.
#ifndef KINGLET_CONVERTERS_FAMILIES_SOURCE_WEIGHTS_H_
#define KINGLET_CONVERTERS_FAMILIES_SOURCE_WEIGHTS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "converters/checkpoint.h"
#include "kinglet/status.h"

namespace kinglet {

struct SourceTensor {
  std::string name;
  std::vector<uint64_t> shape;                         // empty: a scalar
  std::function<Result<std::vector<float>>()> values;  // row-major
};
// In the file's order; names are unique.
using SourceWeights = std::vector<SourceTensor>;

// The tensors of a state dict; `checkpoint` must outlive them. Tensors may share storages (tied
// tables do), but all together may not have more entries than twice the bytes of the file, so that
// a small file cannot ask for unbounded memory. Errors: KINGLET_INVALID_CHECKPOINT.
Result<SourceWeights> WeightsOf(const Checkpoint& checkpoint, const StateDict& tensors);

// Reads one tensor and refuses a value that is not finite, naming the tensor and the entry's index.
// Errors: as Checkpoint::ReadFloats, and KINGLET_INVALID_CHECKPOINT.
Result<std::vector<float>> ReadFinite(const SourceTensor& tensor);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_SOURCE_WEIGHTS_H_

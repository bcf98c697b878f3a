// A run of `kinglet sensitivity`: measures each change of each tensor and keeps its file.
#ifndef KINGLET_TOOLS_SENSITIVITY_RUN_H_
#define KINGLET_TOOLS_SENSITIVITY_RUN_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "converters/convert.h"
#include "converters/planning/tensor_change.h"
#include "format/encoding.h"
#include "kinglet/status.h"
#include "tools/console.h"

namespace kinglet {

struct SensitivityRequest {
  ConvertOptions convert;
  std::string text, ids, output;
  std::vector<std::string> tensors;  // patterns; empty: each tensor that convert changes
  // The changes of a tensor of this shape. Those that it cannot have are omitted.
  std::function<std::vector<TensorChange>(const Shape& shape)> changes;
  int rest_bits = 9;
  size_t threads = 1;
  uint64_t most_tokens = UINT64_MAX;  // of the text
};

// What the last lines of the command say.
struct SensitivityTotals {
  size_t groups = 0, changes = 0, first = 0, not_run = 0;
  uint64_t tokens = 0;
  double seconds = 0, seconds_apart = 0;
};

// Continues the file of the same run, or begins it. Errors: those of Convert, of reading the text
// and of running the model; KINGLET_INVALID_ARGUMENT for another run's file.
Result<SensitivityTotals> RunSensitivities(const SensitivityRequest& request, Progress& progress);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_SENSITIVITY_RUN_H_

#include "converters/passes/prune.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>
#include <variant>
#include <vector>

namespace kinglet {

void PruneTensor(double fraction, EncodedTensor& tensor) {
  const std::vector<float> values = DecodedValues(tensor);
  const auto count =
      static_cast<uint64_t>(std::floor(fraction * static_cast<double>(values.size())));
  std::vector<uint64_t> order(values.size());
  std::iota(order.begin(), order.end(), uint64_t{0});
  // Magnitude, then index: a total order, so the chosen set is one and the same everywhere.
  std::nth_element(order.begin(), order.begin() + static_cast<ptrdiff_t>(count), order.end(),
                   [&values](uint64_t a, uint64_t b) {
                     return std::pair(std::fabs(values[a]), a) < std::pair(std::fabs(values[b]), b);
                   });
  order.resize(count);
  if (auto* dense = std::get_if<DenseF32>(&tensor.values)) {
    for (const uint64_t i : order) dense->values[i] = 0;
  } else if (auto* half = std::get_if<DenseF16>(&tensor.values)) {
    for (const uint64_t i : order) half->words[i] = 0;
  } else if (auto* quantised = std::get_if<Quantised>(&tensor.values)) {
    for (const uint64_t i : order) quantised->codes[i] = 0;
  }
}

void PruneTensors(double fraction, std::span<const TensorId> which, ModelDraft& draft) {
  for (const TensorId id : which) PruneTensor(fraction, draft.tensors[id]);
}

}  // namespace kinglet

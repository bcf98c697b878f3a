#include "converters/families/source_weights.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace kinglet {
namespace {

Status Refuse(const SourceTensor& tensor, const std::string& expected, const std::string& found) {
  return Status::Refusal(KINGLET_INVALID_CHECKPOINT, "checkpoint", "tensor " + tensor.name,
                         expected, found);
}

Status CheckCount(const SourceTensor& tensor, uint64_t found) {
  const uint64_t expected = CountEntries(tensor.shape);
  if (found == expected) return {};
  return Refuse(tensor, std::to_string(expected) + " values", std::to_string(found));
}

}  // namespace

SourceTensor StoredTensor(std::string name, StoredElements elements, StridedView view) {
  SourceTensor tensor = {std::move(name), view.shape, {}, {}};
  tensor.values = [elements, view] { return ReadFloats(elements, view); };
  tensor.integers = [elements = std::move(elements), view = std::move(view)] {
    return ReadIntegers(elements, view);
  };
  return tensor;
}

Result<std::vector<float>> ReadFinite(const SourceTensor& tensor) {
  KINGLET_ASSIGN_OR_RETURN(std::vector<float> values, tensor.values());
  KINGLET_RETURN_IF_ERROR(CheckCount(tensor, values.size()));
  const auto bad = std::find_if_not(values.begin(), values.end(),
                                    [](float value) { return std::isfinite(value); });
  if (bad == values.end()) return values;
  return Status::Refusal(
      KINGLET_INVALID_CHECKPOINT, "checkpoint",
      "tensor " + tensor.name + ", entry " + std::to_string(bad - values.begin()),
      "a finite number", std::isnan(*bad) ? "NaN" : (*bad > 0 ? "infinity" : "-infinity"));
}

Result<std::vector<int64_t>> ReadIntegers(const SourceTensor& tensor) {
  if (!tensor.integers) return Refuse(tensor, "integers", "floats");
  KINGLET_ASSIGN_OR_RETURN(std::vector<int64_t> values, tensor.integers());
  KINGLET_RETURN_IF_ERROR(CheckCount(tensor, values.size()));
  return values;
}

}  // namespace kinglet

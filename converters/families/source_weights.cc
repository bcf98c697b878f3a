#include "converters/families/source_weights.h"

#include <algorithm>
#include <bit>
#include <span>
#include <utility>

#include "converters/entries.h"

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

bool SameBits(std::span<const float> a, std::span<const float> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](float x, float y) {
    return std::bit_cast<uint32_t>(x) == std::bit_cast<uint32_t>(y);
  });
}

}  // namespace

SourceTensor StoredTensor(std::string name, StoredElements elements, StridedView view) {
  SourceTensor tensor = {std::move(name), view.shape, {}, {}, {}};
  tensor.values = [elements, view] { return ReadFloats(elements, view); };
  tensor.integers = [elements = std::move(elements), view = std::move(view)] {
    return ReadIntegers(elements, view);
  };
  return tensor;
}

Result<std::vector<float>> ReadFinite(const SourceTensor& tensor) {
  KINGLET_ASSIGN_OR_RETURN(std::vector<float> values, tensor.values());
  KINGLET_RETURN_IF_ERROR(CheckCount(tensor, values.size()));
  KINGLET_RETURN_IF_ERROR(CheckFinite("checkpoint", "tensor " + tensor.name, values));
  return values;
}

Result<bool> SameParameter(const SourceTensor& a, const SourceTensor& b) {
  if (a.shape != b.shape) return false;
  if (&a == &b || (!a.place.empty() && a.place == b.place)) return true;
  KINGLET_ASSIGN_OR_RETURN(const std::vector<float> first, ReadFinite(a));
  KINGLET_ASSIGN_OR_RETURN(const std::vector<float> second, ReadFinite(b));
  return SameBits(first, second);
}

Result<std::vector<int64_t>> ReadIntegers(const SourceTensor& tensor) {
  if (!tensor.integers) return Refuse(tensor, "integers", "floats");
  KINGLET_ASSIGN_OR_RETURN(std::vector<int64_t> values, tensor.integers());
  KINGLET_RETURN_IF_ERROR(CheckCount(tensor, values.size()));
  return values;
}

}  // namespace kinglet

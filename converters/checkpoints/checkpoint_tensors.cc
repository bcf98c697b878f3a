#include "converters/checkpoints/checkpoint_tensors.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

#include "converters/checkpoints/entries.h"
#include "converters/checkpoints/refuse_checkpoint.h"
#include "format/digest.h"

namespace kinglet {
namespace {

Status RefuseCheckpointTensor(const CheckpointTensor& tensor, const std::string& expected,
                              const std::string& found) {
  return RefuseCheckpoint("tensor " + tensor.name, expected, found);
}

Status CheckTensorCount(const CheckpointTensor& tensor, uint64_t found) {
  const uint64_t expected = CountEntries(tensor.shape);
  if (found == expected) return {};
  return RefuseCheckpointTensor(tensor, std::to_string(expected) + " values",
                                std::to_string(found));
}

Result<Digest128> DigestOfValues(const CheckpointTensor& tensor) {
  KINGLET_ASSIGN_OR_RETURN(const std::vector<float> values, ReadFinite(tensor));
  return DigestOf(std::as_bytes(std::span(values)));
}

}  // namespace

bool HasTensor(std::span<const CheckpointTensor> weights, std::string_view name) {
  return std::any_of(weights.begin(), weights.end(),
                     [name](const CheckpointTensor& tensor) { return tensor.name == name; });
}

bool HasTensorUnder(std::span<const CheckpointTensor> weights, std::string_view prefix) {
  return std::any_of(weights.begin(), weights.end(), [prefix](const CheckpointTensor& tensor) {
    return tensor.name.starts_with(prefix);
  });
}

CheckpointTensor StoredTensor(std::string name, StoredElements elements, StridedView view) {
  CheckpointTensor tensor = {std::move(name), view.shape, {}, {}, {}};
  tensor.type = elements.type;
  tensor.values = [elements, view] { return ReadFloats(elements, view); };
  if (!view.shape.empty()) {
    tensor.rows = [elements, view](uint64_t first, uint64_t count) {
      return ReadFloats(elements, RowsOf(view, first, count));
    };
  }
  tensor.integers = [elements = std::move(elements), view = std::move(view)] {
    return ReadIntegers(elements, view);
  };
  return tensor;
}

Result<std::vector<float>> ReadFinite(const CheckpointTensor& tensor) {
  KINGLET_ASSIGN_OR_RETURN(std::vector<float> values, tensor.values());
  KINGLET_RETURN_IF_ERROR(CheckTensorCount(tensor, values.size()));
  KINGLET_RETURN_IF_ERROR(CheckFinite("checkpoint", "tensor " + tensor.name, values));
  return values;
}

Result<std::vector<float>> ReadFiniteRows(const CheckpointTensor& tensor, uint64_t first,
                                          uint64_t count) {
  uint64_t row = 1;  // entries
  for (size_t i = 1; i < tensor.shape.size(); ++i) row *= tensor.shape[i];
  if (!tensor.rows) {
    KINGLET_ASSIGN_OR_RETURN(const std::vector<float> values, ReadFinite(tensor));
    const auto begin = values.begin() + static_cast<std::ptrdiff_t>(first * row);
    return std::vector<float>(begin, begin + static_cast<std::ptrdiff_t>(count * row));
  }
  KINGLET_ASSIGN_OR_RETURN(std::vector<float> values, tensor.rows(first, count));
  if (values.size() != count * row) {
    return RefuseCheckpointTensor(
        tensor, std::to_string(count * row) + " values in " + std::to_string(count) + " rows",
        std::to_string(values.size()));
  }
  KINGLET_RETURN_IF_ERROR(CheckFinite("checkpoint", "tensor " + tensor.name, values, first * row));
  return values;
}

Result<std::vector<float>> ReadFiniteTransposed(const CheckpointTensor& tensor) {
  const uint64_t rows = tensor.shape[0], columns = tensor.shape[1];
  // A tensor that cannot be read in parts is read once, completely.
  const uint64_t together = tensor.rows ? std::max<uint64_t>(1, rows / 8) : rows;
  std::vector<float> transposed(rows * columns);
  for (uint64_t first = 0; first < rows; first += together) {
    const uint64_t count = std::min(together, rows - first);
    KINGLET_ASSIGN_OR_RETURN(const std::vector<float> part, ReadFiniteRows(tensor, first, count));
    for (uint64_t row = 0; row < count; ++row) {
      for (uint64_t column = 0; column < columns; ++column) {
        transposed[column * rows + first + row] = part[row * columns + column];
      }
    }
  }
  return transposed;
}

Result<bool> SameParameter(const CheckpointTensor& a, const CheckpointTensor& b) {
  if (a.shape != b.shape) return false;
  if (&a == &b) return true;
  if (!a.made.empty() || !b.made.empty()) return false;
  if (!a.place.empty() && a.place == b.place) return true;
  KINGLET_ASSIGN_OR_RETURN(const Digest128 first, DigestOfValues(a));
  KINGLET_ASSIGN_OR_RETURN(const Digest128 second, DigestOfValues(b));
  return first == second;
}

Status CheckStatedTie(const std::string& option, const CheckpointTensor& embedding,
                      const CheckpointTensor& output, bool same) {
  if (same || !embedding.made.empty() || !output.made.empty()) return {};
  return Status::Refusal(KINGLET_INVALID_CHECKPOINT, "checkpoint", "tensor " + output.name,
                         "the values of " + embedding.name + ", as " + option + " is true",
                         "other values (if both were trained: set " + option + " to false)");
}

Result<std::vector<int64_t>> ReadIntegers(const CheckpointTensor& tensor) {
  if (!tensor.integers) return RefuseCheckpointTensor(tensor, "integers", "floats");
  KINGLET_ASSIGN_OR_RETURN(std::vector<int64_t> values, tensor.integers());
  KINGLET_RETURN_IF_ERROR(CheckTensorCount(tensor, values.size()));
  return values;
}

}  // namespace kinglet

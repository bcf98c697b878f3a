// A training code's named tensors as families see them: names and shapes first, values on demand.
// Where the values come from (a file of any container, memory in a test) is behind the readers.
#ifndef KINGLET_CONVERTERS_SOURCES_SOURCE_WEIGHTS_H_
#define KINGLET_CONVERTERS_SOURCES_SOURCE_WEIGHTS_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "converters/sources/elements.h"
#include "kinglet/status.h"

namespace kinglet {

struct SourceTensor {
  std::string name;
  std::vector<uint64_t> shape;                         // empty: a scalar
  std::function<Result<std::vector<float>>()> values;  // row-major
  // The same entries where they are integers: exact, which float32 is up to 2^24 only. Refuses a
  // tensor of a float type. Empty: the tensor has no integers.
  std::function<Result<std::vector<int64_t>>()> integers = {};
  // Tensors of one shape and one place are one in the file. Empty: not known.
  std::string place = {};
  // The rows [first, first + count) of a matrix, without reading the others; for a vector, so many
  // entries. Empty: all values must be read. REQUIRES: the range lies in shape[0].
  std::function<Result<std::vector<float>>(uint64_t first, uint64_t count)> rows = {};
};
// In the file's order; names are unique.
using SourceWeights = std::vector<SourceTensor>;

bool HasTensor(std::span<const SourceTensor> weights, std::string_view name);
// Whether any name starts with `prefix`.
bool HasTensorUnder(std::span<const SourceTensor> weights, std::string_view prefix);

// A tensor whose entries are a view of elements in a file.
SourceTensor StoredTensor(std::string name, StoredElements elements, StridedView view);

// Reads one tensor and refuses a value that is not finite, naming the tensor and the entry's index.
// Errors: KINGLET_INVALID_CHECKPOINT, and those of the tensor's reader.
Result<std::vector<float>> ReadFinite(const SourceTensor& tensor);

// The same of the rows [first, first + count) alone (SourceTensor::rows).
Result<std::vector<float>> ReadFiniteRows(const SourceTensor& tensor, uint64_t first,
                                          uint64_t count);

// The transpose [columns, rows] of a matrix, put together from parts of the tensor, so that memory
// holds it once and an eighth. REQUIRES: the shape has two dimensions.
Result<std::vector<float>> ReadFiniteTransposed(const SourceTensor& tensor);

// Whether two tensors of a checkpoint are one parameter: tied parameters share a place where the
// container can say so, and have equal bits, whatever they share (of which equal 128-bit digests
// are taken as proof, so that one of them is in memory at a time). Errors: as ReadFinite's.
Result<bool> SameParameter(const SourceTensor& a, const SourceTensor& b);

// Reads one tensor of codes, indices or counts. Errors: the same, also for a tensor of a float
// type.
Result<std::vector<int64_t>> ReadIntegers(const SourceTensor& tensor);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_SOURCES_SOURCE_WEIGHTS_H_

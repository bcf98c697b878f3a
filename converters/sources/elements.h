// The elements of stored tensors: the types that training codes write, and a tensor's entries
// picked out of them, as float32 or as exact integers.
#ifndef KINGLET_CONVERTERS_SOURCES_ELEMENTS_H_
#define KINGLET_CONVERTERS_SOURCES_ELEMENTS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "converters/sources/input_file.h"
#include "kinglet/status.h"

namespace kinglet {

// Little-endian; a bool is a byte, false when zero.
enum class ElementType : uint8_t {
  kF64,
  kF32,
  kF16,
  kBF16,
  kI64,
  kI32,
  kI16,
  kI8,
  kU32,
  kU16,
  kU8,
  kBool
};
size_t ElementBytes(ElementType type);

// Gives the bytes [offset, offset + bytes) to `sink`, in pieces as a ByteSink takes them.
using ByteSource = std::function<Status(uint64_t offset, uint64_t bytes, const ByteSink& sink)>;

// Elements that follow each other somewhere in a file. REQUIRES: so many bytes are there.
struct StoredElements {
  std::string file;   // for messages
  std::string where;  // "storage '10'": for messages
  ElementType type;
  uint64_t count;
  ByteSource read;
};

// A tensor as a view of elements: entry [i0, i1, ..] is element offset + sum(i * stride).
struct StridedView {
  uint64_t offset;
  std::vector<uint64_t> shape, strides;
};

// Entries of a tensor of this shape; 2^64 - 1 where they overflow.
uint64_t CountEntries(const std::vector<uint64_t>& shape);

// The view of a tensor whose last dimension varies fastest, or, in Fortran order, its first.
// REQUIRES: CountEntries(shape) does not overflow.
StridedView WholeView(const std::vector<uint64_t>& shape, bool fortran_order = false);

// The rows [first, first + count) of a view of at least one dimension. REQUIRES: the range lies in
// shape[0].
StridedView RowsOf(StridedView view, uint64_t first, uint64_t count);

// The view's entries, row-major; memory holds them once, and views that repeat elements or
// interleave them twice. Floats and doubles become float32 (doubles are rounded to nearest
// even), as do half and bfloat16 (exact) and integers (rounded above 2^24). Errors:
// KINGLET_INVALID_CHECKPOINT for a view that leaves the elements or repeats them without end,
// KINGLET_OUT_OF_MEMORY, and what `read` gives.
Result<std::vector<float>> ReadFloats(const StoredElements& elements, const StridedView& view);
// The same, of integers and bools (0 or 1), exact. Refuses elements of a float type.
Result<std::vector<int64_t>> ReadIntegers(const StoredElements& elements, const StridedView& view);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_SOURCES_ELEMENTS_H_

// Tensors as files store them: element types, strided views of a run of elements, and reading a
// view's entries as float32 or as exact integers.
#ifndef KINGLET_CONVERTERS_CHECKPOINTS_ELEMENTS_H_
#define KINGLET_CONVERTERS_CHECKPOINTS_ELEMENTS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/input_file.h"
#include "kinglet/status.h"

namespace kinglet {

// Little-endian; a bool is a byte, false when zero. The types of 8-bit floats are those of
// torch.float8_*: exponent and mantissa bits, "fnuz" without infinities and negative zero; e8m0 is
// a power of two.
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
  kBool,
  kU64,
  kF8E4M3,
  kF8E5M2,
  kF8E4M3Fnuz,
  kF8E5M2Fnuz,
  kF8E8M0
};
size_t ElementBytes(ElementType type);
// "f32", "bf16", "i64", "bool": for people and scripts.
std::string_view ElementName(ElementType type);
bool IsFloat(ElementType type);

// An element type under the name that a container gives it.
struct NamedElementType {
  std::string_view name;
  ElementType type;
};
// The type of this name; nullopt if `types` does not have the name.
std::optional<ElementType> FindElementType(std::span<const NamedElementType> types,
                                           std::string_view name);
// "F64, F32 or BOOL": for messages.
std::string ListNames(std::span<const NamedElementType> types);

// Passes the bytes [offset, offset + bytes) to `sink` piece by piece.
using ByteRangeReader =
    std::function<Status(uint64_t offset, uint64_t bytes, const ByteSink& sink)>;

// Consecutive elements in a file.
struct StoredElements {
  std::string file;   // for messages
  std::string where;  // "storage '10'": for messages
  ElementType type;
  uint64_t count;
  ByteRangeReader read;  // REQUIRES: has count * ElementBytes(type) bytes
  bool negated = false;  // values have the opposite sign of those in the file
};

// A tensor as a view of elements: entry [i0, i1, ..] is element offset + sum(i * stride).
struct StridedView {
  uint64_t offset;
  std::vector<uint64_t> shape, strides;
};

// The most entries of a view that has more entries than there are elements, as an expanded tensor
// (stride 0) has: a bound of the memory that a small file can ask for.
inline constexpr uint64_t kMaxRepeated = uint64_t{1} << 24;

// The number of entries of a tensor of this shape; 2^64 - 1 where it overflows.
uint64_t CountEntries(const std::vector<uint64_t>& shape);

// The view of a tensor whose last dimension varies fastest, or, in Fortran order, its first.
// REQUIRES: CountEntries(shape) does not overflow.
StridedView WholeView(const std::vector<uint64_t>& shape, bool fortran_order = false);

// The rows [first, first + count) of a view of at least one dimension. REQUIRES: the range lies in
// shape[0].
StridedView RowsOf(StridedView view, uint64_t first, uint64_t count);

// The view's entries as float32, row-major. Doubles, and integers above 2^24, are rounded to
// nearest even; smaller floats are exact. Memory holds the entries once, or twice where the view
// repeats or interleaves elements. Errors: KINGLET_INVALID_CHECKPOINT for a view that reaches
// beyond the elements or has more than kMaxRepeated entries of fewer elements,
// KINGLET_OUT_OF_MEMORY, and those of `read`.
Result<std::vector<float>> ReadFloats(const StoredElements& elements, const StridedView& view);
// The view's entries as exact integers; a bool is 0 or 1. Refuses elements of a float type.
Result<std::vector<int64_t>> ReadIntegers(const StoredElements& elements, const StridedView& view);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_CHECKPOINTS_ELEMENTS_H_

// NumPy's .npy files, as numpy.save writes them: format versions 1.0, 2.0 and 3.0, specified in the
// documentation of numpy.lib.format.
#ifndef KINGLET_CONVERTERS_CHECKPOINTS_NPY_H_
#define KINGLET_CONVERTERS_CHECKPOINTS_NPY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "converters/checkpoints/elements.h"
#include "kinglet/status.h"

namespace kinglet {

struct NpyHeader {
  std::string type;            // NumPy's name of the type, as in the file: "<f4"
  bool fortran_order = false;  // the first dimension varies fastest
  std::vector<uint64_t> shape;
  uint64_t data_begin = 0;  // offset of the first value, in bytes
};

struct NpyArray {
  std::string type;             // NumPy's name of the type, as in the file: "<f4"
  std::vector<uint64_t> shape;  // empty: a scalar
  // Row-major. Integers of 8 to 64 bits become int64_t; strings are UTF-8.
  std::variant<std::vector<int64_t>, std::vector<float>, std::vector<double>,
               std::vector<std::string>>
      values;

  // The values if they are integers or strings, otherwise nullptr.
  const std::vector<int64_t>* integers() const {
    return std::get_if<std::vector<int64_t>>(&values);
  }
  std::vector<std::string>* strings() { return std::get_if<std::vector<std::string>>(&values); }
};

// The element type of NumPy's name ("<f4"); nullopt for other types. ListNumpyTypes() names them.
std::optional<ElementType> NumpyElementType(std::string_view name);
std::string ListNumpyTypes();

bool LooksLikeNpy(std::span<const std::byte> bytes);

// Parses the header, with which `bytes` starts; the values may be missing. Errors:
// KINGLET_INVALID_CHECKPOINT.
Result<NpyHeader> ParseNpyHeader(std::span<const std::byte> bytes);

// Parses a whole file of type |i1 |u1 <i2 <u2 <i4 <u4 <i8 <f4 <f8, <U (strings), or |O (a pickled
// array or list of strings). Refuses every other type, big-endian values, Fortran order, and values
// of fewer or more bytes than the shape needs. Errors: KINGLET_INVALID_CHECKPOINT,
// KINGLET_OUT_OF_MEMORY.
Result<NpyArray> ParseNpy(std::span<const std::byte> bytes);
// Errors: also KINGLET_NOT_FOUND, KINGLET_IO_ERROR, KINGLET_OUT_OF_MEMORY.
Result<NpyArray> ReadNpy(const std::string& path);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_CHECKPOINTS_NPY_H_

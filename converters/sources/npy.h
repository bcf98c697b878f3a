// Arrays that numpy.save wrote (format versions 1.0, 2.0 and 3.0 of numpy.lib.format).
#ifndef KINGLET_CONVERTERS_SOURCES_NPY_H_
#define KINGLET_CONVERTERS_SOURCES_NPY_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "kinglet/status.h"

namespace kinglet {

struct NpyHeader {
  std::string type;            // numpy's, as in the file: "<f4"
  bool fortran_order = false;  // the first dimension varies fastest
  std::vector<uint64_t> shape;
  uint64_t data_begin = 0;  // byte where the values start
};

struct NpyArray {
  std::string type;             // numpy's, as in the file: "<f4"
  std::vector<uint64_t> shape;  // empty: a scalar
  // Row-major. Integers of 8 to 64 bits are widened; strings are UTF-8.
  std::variant<std::vector<int64_t>, std::vector<float>, std::vector<double>,
               std::vector<std::string>>
      values;
};

bool LooksLikeNpy(std::span<const std::byte> bytes);

// The header at the start of `bytes`, which may end where the values start. Errors:
// KINGLET_INVALID_CHECKPOINT.
Result<NpyHeader> ParseNpyHeader(std::span<const std::byte> bytes);

// Types |i1 |u1 <i2 <u2 <i4 <u4 <i8 <f4 <f8, strings <U, and arrays or lists of strings pickled as
// |O. Refuses every other type, big-endian values, Fortran order, and a size that is not exactly
// the shape's. Errors: KINGLET_INVALID_CHECKPOINT.
Result<NpyArray> ParseNpy(std::span<const std::byte> bytes);
// Errors: also KINGLET_NOT_FOUND, KINGLET_IO_ERROR, KINGLET_OUT_OF_MEMORY.
Result<NpyArray> ReadNpy(const std::string& path);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_SOURCES_NPY_H_

// Reorders matrices that frameworks store in another order than a model file.
#ifndef KINGLET_CONVERTERS_MATRIX_ORDER_H_
#define KINGLET_CONVERTERS_MATRIX_ORDER_H_

#include <cstdint>
#include <span>
#include <vector>

namespace kinglet {

// Transposes each of several adjacent matrices [rows, columns], row-major. REQUIRES: rows * columns
// divides the number of values.
std::vector<float> Transposed(std::span<const float> values, uint64_t rows, uint64_t columns);

// Interleaves the rows of several matrices (attention queries, keys, values) by head: for each
// head, its rows of the first matrix, of the second, and so on. `sizes`: the rows of a head in each
// matrix, or numbers in proportion to them. REQUIRES: heads times the sum of the sizes divides the
// number of values.
std::vector<float> RowsByHead(std::span<const float> values, uint64_t heads,
                              std::span<const uint64_t> sizes);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_MATRIX_ORDER_H_

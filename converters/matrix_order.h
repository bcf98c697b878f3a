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

// Interleaves the rows of `parts` matrices [heads * size, columns] (attention queries, keys,
// values) by head: for each head, its `size` rows of the first matrix, of the second, and so on.
// REQUIRES: parts * heads divides the number of values.
std::vector<float> RowsByHead(std::span<const float> values, uint64_t parts, uint64_t heads);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_MATRIX_ORDER_H_

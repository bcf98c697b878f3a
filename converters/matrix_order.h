// Matrices whose entries training codes store in another order than a model does.
#ifndef KINGLET_CONVERTERS_MATRIX_ORDER_H_
#define KINGLET_CONVERTERS_MATRIX_ORDER_H_

#include <cstdint>
#include <span>
#include <vector>

namespace kinglet {

// Adjacent matrices [rows, columns], row-major, each transposed. REQUIRES: rows * columns divides
// the number of values.
std::vector<float> Transposed(std::span<const float> values, uint64_t rows, uint64_t columns);

// Rows of `parts` matrices [heads size, columns], one matrix after the other (all queries, then all
// keys, then all values) -> head after head: its rows of the first matrix, of the second, and so
// on. REQUIRES: parts * heads divides the number of values.
std::vector<float> RowsByHead(std::span<const float> values, uint64_t parts, uint64_t heads);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_MATRIX_ORDER_H_

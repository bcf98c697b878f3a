// Products of matrices in float64 whose bits depend neither on blocks nor on threads.
#ifndef KINGLET_CONVERTERS_PASSES_ORDERED_PRODUCTS_H_
#define KINGLET_CONVERTERS_PASSES_ORDERED_PRODUCTS_H_

#include <cstddef>

namespace kinglet {

// Rows that lie `stride` elements apart.
template <class T>
struct MatrixPart {
  T* values;
  size_t stride;

  T* Row(size_t row) const { return values + row * stride; }
  MatrixPart From(size_t row, size_t column) const { return {Row(row) + column, stride}; }
};

enum class ProductSign { kPlus, kMinus };

// c[i][j] += a[0][i] b[0][j], then += a[1][i] b[1][j] and so on, or -=, for i < rows, j < columns
// and `depth` products. Each product and each sum is rounded, in this order. REQUIRES: c overlaps
// neither a nor b; threads >= 1.
void AddProducts(ProductSign sign, size_t rows, size_t columns, size_t depth,
                 MatrixPart<const double> a, MatrixPart<const double> b, MatrixPart<double> c,
                 size_t threads);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PASSES_ORDERED_PRODUCTS_H_

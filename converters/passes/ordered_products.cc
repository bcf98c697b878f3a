#include "converters/passes/ordered_products.h"

#include <algorithm>
#include <cstdint>

#include "converters/thread_shares.h"

namespace kinglet {
namespace {

// The sums of a tile stay in registers for kBlockDepth products. Copies of what they read stay in
// the first-level cache: in matrices whose rows are a power of two apart, their lines would evict
// each other.
constexpr size_t kOrderedRows = 4, kOrderedColumns = 4, kBlockRows = 32, kBlockDepth = 64;
// Fewer products take less time than starting threads.
constexpr size_t kLeastShared = size_t{1} << 20;

struct OrderedTile {
  double sums[kOrderedRows][kOrderedColumns] = {};

  void Copy(size_t rows, size_t columns, MatrixPart<double> c) {
    for (size_t i = 0; i < rows; ++i) std::copy_n(c.Row(i), columns, sums[i]);
  }
  void Add(size_t depth, const double (*a)[kOrderedRows], const double (*b)[kOrderedColumns]) {
    for (size_t k = 0; k < depth; ++k) {
      for (size_t i = 0; i < kOrderedRows; ++i) {
        for (size_t j = 0; j < kOrderedColumns; ++j) sums[i][j] += a[k][i] * b[k][j];
      }
    }
  }
  void Store(size_t rows, size_t columns, MatrixPart<double> c) const {
    for (size_t i = 0; i < rows; ++i) std::copy_n(sums[i], columns, c.Row(i));
  }
};

// AddProducts for up to kBlockRows rows and kBlockDepth products.
void AddOrderedBlock(double sign, size_t rows, size_t columns, size_t depth,
                     MatrixPart<const double> a, MatrixPart<const double> b, MatrixPart<double> c) {
  double of_rows[kBlockRows / kOrderedRows][kBlockDepth][kOrderedRows] = {};
  for (size_t k = 0; k < depth; ++k) {
    for (size_t i = 0; i < rows; ++i) {
      of_rows[i / kOrderedRows][k][i % kOrderedRows] = sign * a.Row(k)[i];
    }
  }
  double of_columns[kBlockDepth][kOrderedColumns] = {};
  for (size_t column = 0; column < columns; column += kOrderedColumns) {
    const size_t width = std::min(kOrderedColumns, columns - column);
    for (size_t k = 0; k < depth; ++k) std::copy_n(b.Row(k) + column, width, of_columns[k]);
    for (size_t row = 0; row < rows; row += kOrderedRows) {
      const size_t height = std::min(kOrderedRows, rows - row);
      OrderedTile tile;
      tile.Copy(height, width, c.From(row, column));
      tile.Add(depth, of_rows[row / kOrderedRows], of_columns);
      tile.Store(height, width, c.From(row, column));
    }
  }
}

}  // namespace

void AddProducts(ProductSign sign, size_t rows, size_t columns, size_t depth,
                 MatrixPart<const double> a, MatrixPart<const double> b, MatrixPart<double> c,
                 size_t threads) {
  const size_t shares = rows * columns * depth < kLeastShared ? 1 : threads;
  RunRanges(columns, shares, [&](uint64_t first, uint64_t end) {
    for (size_t k = 0; k < depth; k += kBlockDepth) {
      for (size_t row = 0; row < rows; row += kBlockRows) {
        AddOrderedBlock(sign == ProductSign::kPlus ? 1 : -1, std::min(kBlockRows, rows - row),
                        end - first, std::min(kBlockDepth, depth - k), a.From(k, row),
                        b.From(k, first), c.From(row, first));
      }
    }
  });
}

}  // namespace kinglet

#include "converters/matrix_order.h"

#include <numeric>

namespace kinglet {

std::vector<float> Transposed(std::span<const float> values, uint64_t rows, uint64_t columns) {
  std::vector<float> transposed(values.size());
  for (uint64_t first = 0; first < values.size(); first += rows * columns) {
    for (uint64_t row = 0; row < rows; ++row) {
      for (uint64_t column = 0; column < columns; ++column) {
        transposed[first + column * rows + row] = values[first + row * columns + column];
      }
    }
  }
  return transposed;
}

std::vector<float> RowsByHead(std::span<const float> values, uint64_t heads,
                              std::span<const uint64_t> sizes) {
  std::vector<float> by_head;
  by_head.reserve(values.size());
  const uint64_t all = std::accumulate(sizes.begin(), sizes.end(), uint64_t{0});
  const size_t unit = values.size() / (heads * all);
  for (uint64_t head = 0; head < heads; ++head) {
    uint64_t before = 0;
    for (const uint64_t size : sizes) {
      const auto rows = values.subspan((heads * before + head * size) * unit, size * unit);
      by_head.insert(by_head.end(), rows.begin(), rows.end());
      before += size;
    }
  }
  return by_head;
}

}  // namespace kinglet

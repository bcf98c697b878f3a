#include "converters/matrix_order.h"

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

std::vector<float> RowsByHead(std::span<const float> values, uint64_t parts, uint64_t heads) {
  std::vector<float> by_head;
  by_head.reserve(values.size());
  const size_t size = values.size() / (parts * heads);
  for (uint64_t head = 0; head < heads; ++head) {
    for (uint64_t part = 0; part < parts; ++part) {
      const auto rows = values.subspan((part * heads + head) * size, size);
      by_head.insert(by_head.end(), rows.begin(), rows.end());
    }
  }
  return by_head;
}

}  // namespace kinglet

#include "converters/passes/reconstruction.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <variant>

#include "converters/passes/pack.h"
#include "format/bitpack.h"

namespace kinglet {

uint64_t BytesOfCodes(const CodedTable& table) {
  CodingScheme scheme;
  scheme.pools = table.pools;
  return PackedBytes(table.rows * table.positions, scheme.CodeBits());
}

uint64_t BytesOf(const CodedTable& table) {
  return BytesOfCodes(table) + table.codebook.size() * sizeof(float);
}

uint64_t BytesOf(const LowRank& factors) {
  return (factors.table.size() + factors.projection.size()) * sizeof(float);
}

uint64_t BytesOf(const EncodedTensor& tensor) {
  const EntryBytes entries = BytesOfEntries(tensor);
  uint64_t bytes = tensor.pruned ? entries.pruned : entries.dense;
  // Only integers have scales.
  const auto* quantised = std::get_if<Quantised>(&tensor.values);
  if (quantised == nullptr) return bytes;
  return bytes + PackedBytes(quantised->scales.size(), PackingOfScales(quantised->scales).bits);
}

void ExpandRow(const CodedTable& table, uint64_t row, std::span<float> values) {
  const uint64_t length = table.length;
  const bool concatenate = table.combine == Combine::kConcatenate;
  if (!concatenate) std::fill(values.begin(), values.end(), 0.0F);
  uint64_t first = 0;  // where the position's pool begins
  for (uint64_t position = 0; position < table.positions; ++position) {
    const uint64_t code = first + table.codes[row * table.positions + position];
    const float* sub_vector = table.codebook.data() + code * length;
    if (concatenate) {
      std::copy_n(sub_vector, length, values.begin() + static_cast<int64_t>(position * length));
    } else {
      for (uint64_t i = 0; i < length; ++i) values[i] += sub_vector[i];
    }
    if (table.pools.size() > 1) first += table.pools[position];
  }
  if (table.combine == Combine::kMean) {
    for (float& value : values) value /= static_cast<float>(table.positions);
  }
}

std::vector<float> ExpandedTable(const CodedTable& table) {
  const uint64_t cols = Cols(table);
  std::vector<float> values(table.rows * cols);
  for (uint64_t row = 0; row < table.rows; ++row) {
    ExpandRow(table, row, std::span(values).subspan(row * cols, cols));
  }
  return values;
}

Reconstruction Compare(std::span<const float> values, const Shape& shape,
                       const RowWriter& reconstructed, uint64_t bytes_after) {
  const uint64_t rows = Rows(shape), cols = Cols(shape);
  Reconstruction report;
  report.bytes_before = values.size() * sizeof(float);
  report.bytes_after = bytes_after;
  double squared_errors = 0, squares = 0;
  std::vector<float> row_values(cols);
  for (uint64_t row = 0; row < rows; ++row) {
    reconstructed(row, row_values);
    for (uint64_t col = 0; col < cols; ++col) {
      const double original{values[row * cols + col]};
      const double error = double{row_values[col]} - original;
      squared_errors += error * error;
      squares += original * original;
      report.largest_error = std::max(report.largest_error, std::abs(error));
    }
  }
  if (squared_errors > 0) {
    report.relative_error =
        squares > 0 ? std::sqrt(squared_errors / squares) : std::numeric_limits<double>::infinity();
    report.mean_squared_error = squared_errors / static_cast<double>(values.size());
  }
  return report;
}

Reconstruction Compare(std::span<const float> values, const Shape& shape, const CodedTable& table) {
  const auto expand = [&](uint64_t row, std::span<float> to) { ExpandRow(table, row, to); };
  return Compare(values, shape, expand, BytesOf(table));
}

Reconstruction Compare(std::span<const float> values, const Shape& shape, const LowRank& factors) {
  const auto product = [&](uint64_t row, std::span<float> to) {
    const float* left = factors.table.data() + row * factors.rank;
    for (uint64_t col = 0; col < to.size(); ++col) {
      const float* right = factors.projection.data() + col * factors.rank;
      double sum = 0;
      for (uint64_t i = 0; i < factors.rank; ++i) sum += double{left[i]} * double{right[i]};
      to[col] = static_cast<float>(sum);
    }
  };
  return Compare(values, shape, product, BytesOf(factors));
}

Reconstruction Compare(std::span<const float> values, const EncodedTensor& tensor) {
  const std::vector<float> decoded = DecodedValues(tensor);
  const auto copy = [&](uint64_t row, std::span<float> to) {
    std::copy_n(decoded.begin() + static_cast<int64_t>(row * to.size()), to.size(), to.begin());
  };
  return Compare(values, tensor.shape, copy, BytesOf(tensor));
}

}  // namespace kinglet

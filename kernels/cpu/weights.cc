#include "kernels/cpu/weights.h"

#include <algorithm>
#include <span>
#include <utility>

#include "format/encoding.h"

namespace kinglet::cpu {
namespace {

uint64_t PaddedRows(uint64_t rows) { return (rows + kPanelRows - 1) / kPanelRows * kPanelRows; }

// Places of entry (row, col) in the two layouts.
uint64_t CodeAt(uint64_t cols, uint64_t row, uint64_t col) {
  const uint64_t pairs = (cols + 1) / 2;
  return ((row / kPanelRows * pairs + col / 2) * kPanelRows + row % kPanelRows) * 2 + col % 2;
}
uint64_t RealAt(uint64_t cols, uint64_t row, uint64_t col) {
  return (row / kPanelRows * cols + col) * kPanelRows + row % kPanelRows;
}

void LayOutCodes(const DecodedCodes& decoded, Panels& panels) {
  const uint64_t rows = panels.rows, cols = panels.cols;
  panels.bits = decoded.bits;
  panels.codes.resize(PaddedRows(rows) * ((cols + 1) / 2 * 2));
  for (uint64_t row = 0; row < rows; ++row) {
    for (uint64_t col = 0; col < cols; ++col) {
      panels.codes[CodeAt(cols, row, col)] = decoded.codes[row * cols + col];
    }
  }
  panels.scales.resize(PaddedRows(rows));
  for (uint64_t row = 0; row < rows; ++row) {
    panels.scales[row] = decoded.scales[decoded.scales.size() == 1 ? 0 : row];
  }
}

// `value_at(row, col)` is the matrix.
template <class ValueAt>
void LayOutReals(Panels& panels, const ValueAt& value_at) {
  panels.values.resize(PaddedRows(panels.rows) * panels.cols);
  for (uint64_t row = 0; row < panels.rows; ++row) {
    for (uint64_t col = 0; col < panels.cols; ++col) {
      panels.values[RealAt(panels.cols, row, col)] = value_at(row, col);
    }
  }
}

}  // namespace

void Panels::CopyCodes(uint64_t row, int16_t* out) const {
  for (uint64_t col = 0; col < cols; ++col) out[col] = codes[CodeAt(cols, row, col)];
}

void Panels::CopyReals(uint64_t row, float* out) const {
  for (uint64_t col = 0; col < cols; ++col) out[col] = values[RealAt(cols, row, col)];
}

std::vector<MemoryRange> Panels::Memory() const {
  if (!integer()) return {std::as_bytes(std::span(values))};
  return {std::as_bytes(std::span(codes)), std::as_bytes(std::span(scales))};
}

std::vector<MemoryRange> Panels::RowMemory(uint64_t row) const {
  const uint64_t panel = row / kPanelRows;
  if (!integer()) {
    const uint64_t size = cols * kPanelRows;
    return {std::as_bytes(std::span(values).subspan(panel * size, size))};
  }
  const uint64_t size = (cols + 1) / 2 * 2 * kPanelRows;
  return {std::as_bytes(std::span(codes).subspan(panel * size, size)),
          std::as_bytes(std::span(scales).subspan(row, 1))};
}

SharedPanels WeightStore::Matrix(WeightId id) {
  SharedPanels& shared = matrices_[id];
  if (shared) return shared;
  const TensorView& view = plan_.weights[id];
  auto panels = std::make_shared<Panels>();
  panels->rows = Rows(view.shape);
  panels->cols = Cols(view.shape);
  const auto* packed = std::get_if<PackedView>(&view.values);
  if (packed != nullptr && packed->rule != ScaleRule::kDividePerTensor) {
    LayOutCodes(DecodeCodes(view), *panels);
  } else {
    const std::vector<float> values = DecodedValues(view);
    LayOutReals(*panels, [&, cols = panels->cols](uint64_t row, uint64_t col) {
      return values[row * cols + col];
    });
  }
  shared = std::move(panels);
  return shared;
}

SharedPanels WeightStore::TransposedReals(WeightId id) {
  SharedPanels& shared = transposed_[id];
  if (shared) return shared;
  const TensorView& view = plan_.weights[id];
  auto panels = std::make_shared<Panels>();
  panels->rows = Cols(view.shape);
  panels->cols = Rows(view.shape);
  const std::vector<float> values = DecodedValues(view);
  LayOutReals(*panels, [&, rows = panels->rows](uint64_t row, uint64_t col) {
    return values[col * rows + row];
  });
  shared = std::move(panels);
  return shared;
}

SharedVector WeightStore::Vector(WeightId id) {
  SharedVector& shared = vectors_[id];
  if (shared) return shared;
  const std::vector<float> values = DecodedValues(plan_.weights[id]);
  auto padded = std::make_shared<AlignedVector<float>>(PaddedRows(values.size()));
  std::copy(values.begin(), values.end(), padded->begin());
  shared = std::move(padded);
  return shared;
}

}  // namespace kinglet::cpu

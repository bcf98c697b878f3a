#include "converters/passes/quantise.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <variant>

namespace kinglet {
float LargestMagnitude(std::span<const float> values) {
  float largest = 0;
  for (const float value : values) largest = std::max(largest, std::fabs(value));
  return largest;
}

namespace {

// Rounds half to even, as nearbyint does in the default mode, without a call: a float32 from 2^23
// on has no fraction, and sums of float32 round half to even. The largest entry's product may round
// to just above n before that, never to n + 1/2. REQUIRES: |value * scale| < 2^22.
void Round(std::span<const float> values, float scale, std::span<int16_t> codes) {
  constexpr float kWhole = 12582912;  // 1.5 * 2^23
  std::transform(values.begin(), values.end(), codes.begin(), [scale](float value) {
    return static_cast<int16_t>(value * scale + kWhole - kWhole);
  });
}

// The codes of a row, and its scale.
float QuantiseRow(std::span<const float> row, int bits, std::span<int16_t> codes) {
  const float scale = static_cast<float>(SymmetricLevels(bits)) / LargestMagnitude(row);
  if (!std::isfinite(scale) || !std::isnormal(1.0F / scale)) {
    std::fill(codes.begin(), codes.end(), int16_t{0});
    return 0;
  }
  Round(row, scale, codes);
  return ClearLowMantissaBits(1.0F / scale, bits);
}

}  // namespace

float ClearLowMantissaBits(float value, int bits) {
  return std::bit_cast<float>(std::bit_cast<uint32_t>(value) & (UINT32_MAX << bits));
}

Quantised QuantiseRows(std::span<const float> values, const Shape& shape, int bits) {
  const uint64_t rows = Rows(shape), cols = Cols(shape);
  Quantised quantised = {bits, ScaleRule::kMultiplyPerRow, std::vector<int16_t>(values.size()),
                         std::vector<float>(rows)};
  for (uint64_t row = 0; row < rows; ++row) {
    quantised.scales[row] = QuantiseRow(values.subspan(row * cols, cols), bits,
                                        std::span(quantised.codes).subspan(row * cols, cols));
  }
  return quantised;
}

Quantised QuantiseWhole(std::span<const float> values, int bits) {
  Quantised quantised = QuantiseRows(values, {1, values.size()}, bits);
  quantised.rule = ScaleRule::kMultiplyPerTensor;
  return quantised;
}

Quantised QuantiseDivided(std::span<const float> values, int bits) {
  Quantised quantised = {
      bits, ScaleRule::kDividePerTensor, std::vector<int16_t>(values.size()), {1.0F}};
  const float scale = static_cast<float>(SymmetricLevels(bits)) / LargestMagnitude(values);
  if (!std::isfinite(scale)) return quantised;
  quantised.scales[0] = scale;
  Round(values, scale, quantised.codes);
  return quantised;
}

void QuantiseTensor(int bits, EncodedTensor& tensor) {
  const auto* dense = std::get_if<DenseF32>(&tensor.values);
  if (dense == nullptr) return;
  tensor.values = tensor.shape.size() == 2 ? QuantiseRows(dense->values, tensor.shape, bits)
                                           : QuantiseDivided(dense->values, bits);
}

std::optional<RowCodes> QuantisedRows(int bits, const EncodedTensor& tensor) {
  const auto* dense = std::get_if<DenseF32>(&tensor.values);
  if (dense == nullptr || tensor.shape.size() != 2) return std::nullopt;
  const std::span<const float> values = dense->values;
  return RowCodes{bits, [values, bits](uint64_t row, std::span<int16_t> codes) {
                    return QuantiseRow(values.subspan(row * codes.size(), codes.size()), bits,
                                       codes);
                  }};
}

}  // namespace kinglet

#include "converters/passes/quantise.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <variant>

namespace kinglet {
namespace {

float LargestMagnitude(std::span<const float> values) {
  float largest = 0;
  for (const float value : values) largest = std::max(largest, std::fabs(value));
  return largest;
}

// nearbyint rounds half to even: the default rounding mode. The largest entry's product may round
// to just above n before that, never to n + 1/2.
void Round(std::span<const float> values, float scale, std::span<int16_t> codes) {
  std::transform(values.begin(), values.end(), codes.begin(), [scale](float value) {
    return static_cast<int16_t>(std::nearbyint(value * scale));
  });
}

}  // namespace

float ClearLowMantissaBits(float value, int bits) {
  return std::bit_cast<float>(std::bit_cast<uint32_t>(value) & (UINT32_MAX << bits));
}

Quantised QuantiseRows(std::span<const float> values, const Shape& shape, int bits) {
  const uint64_t rows = Rows(shape), cols = Cols(shape);
  Quantised quantised;
  quantised.bits = bits;
  quantised.rule = ScaleRule::kMultiplyPerRow;
  quantised.codes.resize(values.size());
  quantised.scales.resize(rows);
  for (uint64_t row = 0; row < rows; ++row) {
    const std::span<const float> entries = values.subspan(row * cols, cols);
    const float scale = static_cast<float>(SymmetricLevels(bits)) / LargestMagnitude(entries);
    if (!std::isfinite(scale) || !std::isnormal(1.0F / scale)) continue;
    Round(entries, scale, std::span(quantised.codes).subspan(row * cols, cols));
    quantised.scales[row] = ClearLowMantissaBits(1.0F / scale, bits);
  }
  return quantised;
}

Quantised QuantiseWhole(std::span<const float> values, int bits) {
  Quantised quantised = QuantiseRows(values, {1, values.size()}, bits);
  quantised.rule = ScaleRule::kMultiplyPerTensor;
  return quantised;
}

Quantised QuantiseDivided(std::span<const float> values, int bits) {
  Quantised quantised;
  quantised.bits = bits;
  quantised.rule = ScaleRule::kDividePerTensor;
  quantised.codes.resize(values.size());
  quantised.scales = {1.0F};
  const float scale = static_cast<float>(SymmetricLevels(bits)) / LargestMagnitude(values);
  if (!std::isfinite(scale)) return quantised;
  quantised.scales[0] = scale;
  Round(values, scale, quantised.codes);
  return quantised;
}

void QuantiseTensors(int bits, std::span<const TensorId> which, ModelDraft& draft) {
  for (const TensorId id : which) {
    EncodedTensor& tensor = draft.tensors[id];
    const auto* dense = std::get_if<DenseF32>(&tensor.values);
    if (dense == nullptr) continue;
    tensor.values = tensor.shape.size() == 2 ? QuantiseRows(dense->values, tensor.shape, bits)
                                             : QuantiseDivided(dense->values, bits);
  }
}

}  // namespace kinglet

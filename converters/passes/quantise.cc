#include "converters/passes/quantise.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <variant>
#include <vector>

namespace kinglet {
float LargestMagnitude(std::span<const float> values) {
  float largest = 0;
  for (const float value : values) largest = std::max(largest, std::fabs(value));
  return largest;
}

namespace {

// value / scale as an integer of at most n, half to even, as nearbyint does in the default mode,
// without a call: a float32 from 2^23 on has no fraction, and sums of float32 round half to even.
// REQUIRES: |value * inverse| < 2^22.
float RoundedCode(float value, float inverse, float n) {
  constexpr float kWhole = 12582912;  // 1.5 * 2^23
  return std::clamp(value * inverse + kWhole - kWhole, -n, n);
}

void Round(std::span<const float> values, float inverse, int bits, std::span<int16_t> codes) {
  const auto n = static_cast<float>(SymmetricLevels(bits));
  std::transform(values.begin(), values.end(), codes.begin(), [inverse, n](float value) {
    return static_cast<int16_t>(RoundedCode(value, inverse, n));
  });
}

// n / max|row|, or 0 for a row that is stored as zeros.
float InverseOfLargest(std::span<const float> row, int bits) {
  const float inverse = static_cast<float>(SymmetricLevels(bits)) / LargestMagnitude(row);
  return std::isfinite(inverse) && std::isnormal(1.0F / inverse) ? inverse : 0;
}

// Sums over a row and its codes at one scale, each as eight partial sums in a fixed order, so that
// the loop is fast and its bits are the same on every machine.
struct FitSums {
  double error = 0;     // of (w - scale * q)^2
  double products = 0;  // of w * q
  double squares = 0;   // of q^2
};
FitSums SumsAt(std::span<const float> row, float scale, int bits) {
  constexpr size_t kParts = 8;
  std::array<std::array<double, kParts>, 3> parts = {};
  const auto n = static_cast<float>(SymmetricLevels(bits));
  const float inverse = 1.0F / scale;
  const auto add = [&](size_t i, size_t part) {
    const float code = RoundedCode(row[i], inverse, n);
    const double error = double{row[i]} - double{scale} * double{code};
    parts[0][part] += error * error;
    parts[1][part] += double{row[i]} * double{code};
    parts[2][part] += double{code} * double{code};
  };
  size_t i = 0;
  for (; i + kParts <= row.size(); i += kParts) {
    for (size_t part = 0; part < kParts; ++part) add(i + part, part);
  }
  for (; i < row.size(); ++i) add(i, i % kParts);
  const auto sum = [](const std::array<double, kParts>& terms) {
    return std::accumulate(terms.begin(), terms.end(), 0.0);
  };
  return {sum(parts[0]), sum(parts[1]), sum(parts[2])};
}

// The codes of a row at a scale that is stored, 0 for a row of zeros.
void CodesAt(std::span<const float> row, float scale, int bits, std::span<int16_t> codes) {
  if (scale == 0) {
    std::fill(codes.begin(), codes.end(), int16_t{0});
  } else {
    Round(row, 1.0F / scale, bits, codes);
  }
}

// The codes of a row, and its scale.
float QuantiseRow(std::span<const float> row, int bits, ScaleBy by, std::span<int16_t> codes) {
  if (by == ScaleBy::kLeastSquares) {
    const float scale = LeastSquaresScale(row, bits);
    CodesAt(row, scale, bits, codes);
    return scale;
  }
  const float inverse = InverseOfLargest(row, bits);
  if (inverse == 0) {
    std::fill(codes.begin(), codes.end(), int16_t{0});
    return 0;
  }
  // The framework computes codes with the scale before its low bits are cleared.
  Round(row, inverse, bits, codes);
  return ClearLowMantissaBits(1.0F / inverse, bits);
}

}  // namespace

float ClearLowMantissaBits(float value, int bits) {
  return std::bit_cast<float>(std::bit_cast<uint32_t>(value) & (UINT32_MAX << bits));
}

float LeastSquaresScale(std::span<const float> row, int bits) {
  const float inverse = InverseOfLargest(row, bits);
  if (inverse == 0) return 0;
  float best = ClearLowMantissaBits(1.0F / inverse, bits);
  FitSums sums = SumsAt(row, best, bits);
  const auto improve = [&](float scale) {
    scale = ClearLowMantissaBits(scale, bits);
    // An inverse that is too large would overflow the rounding; its scale is never the best.
    if (!std::isnormal(scale)) return false;
    const FitSums found = SumsAt(row, scale, bits);
    if (!(found.error < sums.error)) return false;
    best = scale;
    sums = found;
    return true;
  };
  // Neighbours differ by 6 %, the twelfth root of 2; the iterations below find the scales between.
  constexpr float kNext = 0.94387431F;
  constexpr int kScales = 36;
  float tried = best;
  for (int i = 0; i < kScales; ++i) improve(tried *= kNext);
  // The best scale for the codes of the best scale, and so on.
  constexpr int kTurns = 8;
  for (int turn = 0; turn < kTurns; ++turn) {
    if (!improve(static_cast<float>(sums.products / sums.squares))) break;
  }
  return best;
}

Quantised QuantiseRows(std::span<const float> values, const Shape& shape, int bits, ScaleBy by) {
  const uint64_t rows = Rows(shape), cols = Cols(shape);
  Quantised quantised = {bits, ScaleRule::kMultiplyPerRow, std::vector<int16_t>(values.size()),
                         std::vector<float>(rows)};
  for (uint64_t row = 0; row < rows; ++row) {
    quantised.scales[row] = QuantiseRow(values.subspan(row * cols, cols), bits, by,
                                        std::span(quantised.codes).subspan(row * cols, cols));
  }
  return quantised;
}

Quantised QuantiseWhole(std::span<const float> values, int bits, ScaleBy by) {
  Quantised quantised = QuantiseRows(values, {1, values.size()}, bits, by);
  quantised.rule = ScaleRule::kMultiplyPerTensor;
  return quantised;
}

Quantised QuantiseDivided(std::span<const float> values, int bits, ScaleBy by) {
  Quantised quantised = {
      bits, ScaleRule::kDividePerTensor, std::vector<int16_t>(values.size()), {1.0F}};
  float divisor = static_cast<float>(SymmetricLevels(bits)) / LargestMagnitude(values);
  if (!std::isfinite(divisor)) return quantised;
  if (by == ScaleBy::kLeastSquares) {
    const float scale = LeastSquaresScale(values, bits);
    if (scale > 0) divisor = 1.0F / scale;
  }
  quantised.scales[0] = divisor;
  Round(values, divisor, bits, quantised.codes);
  return quantised;
}

void QuantiseTensor(int bits, EncodedTensor& tensor, ScaleBy by) {
  const auto* dense = std::get_if<DenseF32>(&tensor.values);
  if (dense == nullptr) return;
  tensor.values = tensor.shape.size() == 2 ? QuantiseRows(dense->values, tensor.shape, bits, by)
                                           : QuantiseDivided(dense->values, bits, by);
}

std::optional<RowCodes> QuantisedRows(int bits, const EncodedTensor& tensor, ScaleBy by) {
  const auto* dense = std::get_if<DenseF32>(&tensor.values);
  if (dense == nullptr || tensor.shape.size() != 2) return std::nullopt;
  const std::span<const float> values = dense->values;
  if (by == ScaleBy::kLargest) {
    return RowCodes{bits, [values, bits](uint64_t row, std::span<int16_t> codes) {
                      return QuantiseRow(values.subspan(row * codes.size(), codes.size()), bits,
                                         ScaleBy::kLargest, codes);
                    }};
  }
  const uint64_t columns = Cols(tensor.shape);
  std::vector<float> scales(Rows(tensor.shape));
  for (uint64_t row = 0; row < scales.size(); ++row) {
    scales[row] = LeastSquaresScale(values.subspan(row * columns, columns), bits);
  }
  return RowCodes{
      bits, [values, bits, scales = std::move(scales)](uint64_t row, std::span<int16_t> codes) {
        CodesAt(values.subspan(row * codes.size(), codes.size()), scales[row], bits, codes);
        return scales[row];
      }};
}

}  // namespace kinglet

#include "converters/passes/recover.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>
#include <variant>

#include "converters/passes/quantise.h"

namespace kinglet {
namespace {

constexpr int32_t kNeighbours = 16;  // float32 neighbours on each side

// Fills `codes` so that decode(codes[i]) equals values[i] exactly; +0 equals -0. The code tried is
// the integer nearest to guess(values[i]). Returns false if a value has no exact code.
template <class Guess, class Decode>
bool FindCodes(std::span<const float> values, int bits, Guess guess, Decode decode,
               std::span<int16_t> codes) {
  const auto lowest = static_cast<float>(-(1 << (bits - 1)));
  const auto highest = static_cast<float>(SymmetricLevels(bits));
  for (size_t i = 0; i < values.size(); ++i) {
    const float code = std::nearbyint(guess(values[i]));
    // Written so that NaN fails.
    if (!(code >= lowest && code <= highest) || decode(code) != values[i]) return false;
    codes[i] = static_cast<int16_t>(code);
  }
  return true;
}

// Returns the scale with which code * scale gives all values, or 0 if all values are 0.
std::optional<float> FindScale(std::span<const float> values, int bits, std::span<int16_t> codes) {
  const float largest = LargestMagnitude(values);
  if (largest == 0) return 0.0F;
  const int levels = SymmetricLevels(bits);
  for (const int steps : {levels, levels + 1}) {
    const float scale = largest / static_cast<float>(steps);
    if (scale > 0 && FindCodes(
                         values, bits, [scale](float value) { return value / scale; },
                         [scale](float code) { return code * scale; }, codes)) {
      return scale;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Quantised> RecoverRows(std::span<const float> values, const Shape& shape, int bits) {
  const uint64_t rows = Rows(shape), cols = Cols(shape);
  Quantised quantised = {bits, ScaleRule::kMultiplyPerRow, std::vector<int16_t>(values.size()),
                         std::vector<float>(rows)};
  for (uint64_t row = 0; row < rows; ++row) {
    const std::optional<float> scale =
        FindScale(values.subspan(row * cols, cols), bits,
                  std::span(quantised.codes).subspan(row * cols, cols));
    if (!scale) return std::nullopt;
    quantised.scales[row] = *scale;
  }
  return quantised;
}

std::optional<Quantised> RecoverWhole(std::span<const float> values, int bits) {
  std::vector<int16_t> codes(values.size());
  const std::optional<float> scale = FindScale(values, bits, codes);
  if (!scale) return std::nullopt;
  return Quantised{bits, ScaleRule::kMultiplyPerTensor, std::move(codes), {*scale}};
}

std::optional<Quantised> RecoverDivided(std::span<const float> values, int bits) {
  Quantised quantised = {
      bits, ScaleRule::kDividePerTensor, std::vector<int16_t>(values.size()), {1.0F}};
  const float largest = LargestMagnitude(values);
  if (largest == 0) return quantised;
  const float middle = static_cast<float>(SymmetricLevels(bits)) / largest;
  if (!std::isnormal(middle)) return std::nullopt;
  // Nearest first. Adjacent bit patterns are adjacent floats.
  for (int32_t i = 0; i <= 2 * kNeighbours; ++i) {
    const int32_t offset = (i + 1) / 2 * (i % 2 == 0 ? 1 : -1);
    const auto scale = std::bit_cast<float>(std::bit_cast<int32_t>(middle) + offset);
    if (!std::isfinite(scale) || scale <= 0) continue;
    if (FindCodes(
            values, bits, [scale](float value) { return value * scale; },
            [scale](float code) { return code / scale; }, quantised.codes)) {
      quantised.scales[0] = scale;
      return quantised;
    }
  }
  return std::nullopt;
}

void RecoverTensor(int bits, EncodedTensor& tensor, std::vector<std::string>& notes) {
  const auto* dense = std::get_if<DenseF32>(&tensor.values);
  if (dense == nullptr) return;
  const bool matrix = tensor.shape.size() == 2;
  std::optional<Quantised> recovered =
      matrix ? RecoverRows(dense->values, tensor.shape, bits) : RecoverDivided(dense->values, bits);
  if (!recovered && matrix) recovered = RecoverWhole(dense->values, bits);
  if (recovered) {
    tensor.values = std::move(*recovered);
  } else {
    notes.push_back(tensor.name + " stays float32: its values are not integers of " +
                    std::to_string(bits) + " bits with a common " +
                    (matrix ? "scale per row or tensor" : "divisor"));
  }
}

}  // namespace kinglet

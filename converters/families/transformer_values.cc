#include "converters/families/transformer_values.h"

#include <cmath>
#include <cstddef>

namespace kinglet {

std::vector<float> FairseqFrequencies(uint32_t width) {
  const uint32_t half = width / 2;
  const auto slope = static_cast<float>(-std::log(10000.0) / (half - 1));
  std::vector<float> frequencies(half);
  for (uint32_t j = 0; j < half; ++j) {
    const float exponent = static_cast<float>(j) * slope;
    frequencies[j] = static_cast<float>(std::exp(double{exponent}));
  }
  return frequencies;
}

std::vector<float> TransformerXlFrequencies(uint32_t width) {
  std::vector<float> frequencies(width / 2);
  for (uint32_t j = 0; j < width / 2; ++j) {
    const float exponent = static_cast<float>(2 * j) / static_cast<float>(width);
    const auto power = static_cast<float>(std::pow(10000.0, double{exponent}));
    frequencies[j] = 1 / power;
  }
  return frequencies;
}

std::vector<float> ZeroMemory(std::span<const float> key_value_rows, std::span<const float> bias) {
  std::vector<float> start(key_value_rows.size() / bias.size());
  for (size_t i = 0; i < start.size(); ++i) {
    double sum = 0;
    const std::span<const float> row = key_value_rows.subspan(i * bias.size(), bias.size());
    for (size_t j = 0; j < bias.size(); ++j) sum += double{row[j]} * double{bias[j]};
    start[i] = static_cast<float>(sum);
  }
  return start;
}

}  // namespace kinglet

#include "converters/network/frequencies.h"

#include "kernels/portable_functions.h"
#include "kernels/sinusoids.h"

namespace kinglet {
namespace {

constexpr double kLog10000 = 0x1.26bb1bbb55516p+3;  // log(10000)

}  // namespace

std::vector<float> FairseqFrequencies(uint32_t width) {
  const uint32_t half = width / 2;
  const auto slope = static_cast<float>(-kLog10000 / (half - 1));
  std::vector<float> frequencies(half);
  for (uint32_t j = 0; j < half; ++j) {
    const float exponent = static_cast<float>(j) * slope;
    frequencies[j] = static_cast<float>(portable::Exp(double{exponent}));
  }
  return frequencies;
}

std::vector<float> TransformerXlFrequencies(uint32_t width) {
  std::vector<float> frequencies(width / 2);
  for (uint32_t j = 0; j < width / 2; ++j) {
    const float exponent = static_cast<float>(2 * j) / static_cast<float>(width);
    const auto power = static_cast<float>(portable::Exp(kLog10000 * double{exponent}));
    frequencies[j] = 1 / power;
  }
  return frequencies;
}

std::vector<float> SinusoidFrequencies(uint32_t width) {
  const auto slope = static_cast<float>(-(kLog10000 / width));
  std::vector<float> frequencies;
  for (uint32_t column = 0; column < width; column += 2) {
    const float exponent = static_cast<float>(column) * slope;
    frequencies.push_back(static_cast<float>(portable::Exp(double{exponent})));
  }
  return frequencies;
}

std::vector<float> SinusoidTable(uint32_t positions, uint32_t width) {
  const std::vector<float> frequencies = SinusoidFrequencies(width);
  std::vector<float> table;
  table.reserve(uint64_t{positions} * width);
  for (uint32_t position = 0; position < positions; ++position) {
    for (uint32_t column = 0; column < width; ++column) {
      const float angle = static_cast<float>(position) * frequencies[column / 2];
      table.push_back(static_cast<float>(column % 2 == 0 ? Sine(angle) : Cosine(angle)));
    }
  }
  return table;
}

}  // namespace kinglet

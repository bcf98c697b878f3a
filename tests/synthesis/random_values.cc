#include "tests/synthesis/random_values.h"

#include <cmath>

namespace kinglet {

SplitMix64 GeneratorOf(uint64_t seed, std::string_view name) {
  SplitMix64 random(seed);
  for (const char c : name) {
    random = SplitMix64(random.Next() ^ static_cast<unsigned char>(c));
  }
  return random;
}

std::vector<float> RandomValues(uint64_t count, float centre, float limit, SplitMix64 random) {
  std::vector<float> values(count);
  for (float& value : values) {
    const float number = random.Signed();
    const float magnitude = 0.25F + 0.75F * std::fabs(number);
    value = centre + std::copysign(limit * magnitude, number);
  }
  return values;
}

Quantised RandomCodes(uint64_t count, float limit, int bits, SplitMix64 random) {
  const int largest = (1 << (bits - 1)) - 1;
  const auto least = static_cast<int>(std::ceil(static_cast<float>(largest) / 4));
  const uint64_t choices = static_cast<uint64_t>(largest) - static_cast<uint64_t>(least) + 1;
  Quantised quantised;
  quantised.bits = bits;
  quantised.rule = ScaleRule::kMultiplyPerTensor;
  quantised.scales = {limit / static_cast<float>(largest)};
  quantised.codes.resize(count);
  for (int16_t& code : quantised.codes) {
    const uint64_t number = random.Next();
    const int magnitude = least + static_cast<int>(((number >> 32) * choices) >> 32);
    code = static_cast<int16_t>((number & 1) != 0 ? magnitude : -magnitude);
  }
  return quantised;
}

}  // namespace kinglet

#include "kernels/fused.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

namespace kinglet::fused_test {
namespace {

void ExpectSame(float a, float b, float c) {
  const float expected = std::fma(a, b, c), found = FusedByDouble(a, b, c);
  if (std::isnan(expected)) {
    EXPECT_TRUE(std::isnan(found)) << a << " * " << b << " + " << c;
  } else {
    EXPECT_EQ(std::bit_cast<uint32_t>(found), std::bit_cast<uint32_t>(expected))
        << std::hexfloat << a << " * " << b << " + " << c << " = " << expected << ", found "
        << found;
  }
}

TEST(Fused, EqualsTheInstructionForAnyBits) {
  std::mt19937 random(1);
  for (int i = 0; i < 1'000'000; ++i) {
    const float a = std::bit_cast<float>(static_cast<uint32_t>(random()));
    const float b = std::bit_cast<float>(static_cast<uint32_t>(random()));
    ExpectSame(a, b, std::bit_cast<float>(static_cast<uint32_t>(random())));
  }
}

// The sum in double is a place between two floats, from which the exact sum differs by less than a
// double shows.
TEST(Fused, EqualsTheInstructionNextToHalves) {
  constexpr float kAbove = 1 + 0x1p-23f, kBelow = 1 - 0x1p-23f;  // their product is 1 - 2^-46
  std::mt19937 random(2);
  const auto odd = [&](int bits) { return static_cast<float>((random() >> (32 - bits)) | 1); };
  for (int exponent = -125; exponent <= 100; ++exponent) {
    for (int i = 0; i < 400; ++i) {
      const float c = std::ldexp(1 + static_cast<float>(random() >> 9) * 0x1p-23f, exponent);
      const float half = std::ldexp(1.0f, exponent - 24), sign = i % 2 == 0 ? 1.0f : -1.0f;
      ExpectSame(kAbove, sign * half * kBelow, c);
      ExpectSame(kAbove, sign * half * kBelow, -c);
      // A product of 25 bits, of which the last is half a float's, and a little.
      const float a = odd(13), b = std::ldexp(odd(12), exponent);
      ExpectSame(a, b, sign * std::ldexp(1.0f, exponent - 40));
      ExpectSame(a, b, sign * std::ldexp(1.0f, std::max(exponent - 120, -149)));
      ExpectSame(a, b, 0.0f);
    }
  }
  // Results below the smallest normal number, where halves lie at other bits.
  for (int i = 0; i < 100'000; ++i) {
    const float c = std::ldexp(static_cast<float>(random() >> 9), -149);
    ExpectSame(0x1p-75f * kAbove, 0x1p-75f * kBelow, c);
    ExpectSame(0x1p-75f * kAbove, -0x1p-75f * kBelow, c);
    ExpectSame(0x1p-75f, 0x1p-75f, c);
  }
}

TEST(Fused, EqualsTheInstructionAtTheEnds) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float values[] = {0.0f,        1.0f,      0x1p-149f,    0x1p-126f, 0x1.fffffep-127f,
                          0x1p127f,    0x1p64f,   0x1p-75f,     3.0f,      0x1.fffffep127f,
                          0x1.8p-149f, kInfinity, std::nanf("")};
  for (const float a : values) {
    for (const float b : values) {
      for (const float c : values) {
        for (const float sign : {1.0f, -1.0f}) {
          ExpectSame(a, b, sign * c);
          ExpectSame(-a, b, sign * c);
        }
      }
    }
  }
}

}  // namespace
}  // namespace kinglet::fused_test

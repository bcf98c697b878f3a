// Element-wise vector functions on every instruction set of this machine, against numbers worked
// out by hand. tests/kernels/conformance_test.cc compares them with ref.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "kernels/ref/softmax.h"
#include "tests/kernels/cpu/vector_fixture.h"

namespace kinglet::cpu::vector_elements_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

class VectorElements : public testing::TestWithParam<Target> {
 protected:
  const VectorFunctions* functions_ = FindVectorFunctions(GetParam());
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(VectorElements);

TEST_P(VectorElements, QuantiseRoundsHalfToEvenClampsAndMapsNaNToTheBottom) {
  const std::vector<float> x = {0.5f, 1.5f,  2.5f,      -0.5f,      -1.5f, -2.5f, 0.49f, 3.0f,
                                9.0f, -9.0f, kInfinity, -kInfinity, kNaN,  -0.0f, 1e-45f};
  const std::vector<int16_t> expected = {0, 2, 2, 0, -2, -2, 0, 3, 3, -3, 3, -3, -3, 0, 0};
  // Once in full vectors and once element by element.
  for (const size_t copies : {1u, 4u}) {
    std::vector<float> many;
    for (size_t i = 0; i < copies; ++i) many.insert(many.end(), x.begin(), x.end());
    std::vector<int16_t> codes(many.size());
    functions_->quantise(many.data(), many.size(), 3.0f, 1.0f, codes.data());
    for (size_t i = 0; i < codes.size(); ++i) {
      EXPECT_EQ(codes[i], expected[i % x.size()]) << many[i];
    }
  }
}

// Division and std::nearbyint, one number after the other: halves of codes times a scale, and their
// neighbours, round as quotients do, which a product with a rounded reciprocal alone would not.
TEST_P(VectorElements, QuantiseRoundsExactQuotients) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> mantissa(1.0f, 2.0f);
  std::uniform_int_distribution<int> code(-255, 255), exponent(-50, 50);
  for (int trial = 0; trial < 2000; ++trial) {
    const float scale = std::ldexp(mantissa(random), exponent(random)), most = 256 * scale;
    std::vector<float> x = {0, -0.0f, 1e-45f, -1e-38f};
    for (int i = 0; i < 16; ++i) {
      const float half = (static_cast<float>(code(random)) + 0.5f) * scale;
      x.insert(x.end(), {half, std::nextafter(half, most), std::nextafter(half, -most)});
    }
    std::vector<int16_t> codes(x.size());
    functions_->quantise(x.data(), x.size(), most, scale, codes.data());
    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_EQ(codes[i], std::nearbyint(x[i] / scale)) << x[i] << " / " << scale;
    }
  }
}

TEST_P(VectorElements, SoftmaxHasTheBitsOfRef) {
  std::mt19937 random(2);
  for (const float spread : {1.0f, 30.0f, 200.0f}) {  // the last one gives weights of 0
    std::normal_distribution<float> score(0, spread);
    for (size_t first = 0; first < 97; ++first) {
      std::vector<float> x(97);
      for (size_t i = first; i < x.size(); ++i) x[i] = score(random);
      std::vector<float> expected = x;
      ref::SoftmaxInPlace(expected.data(), first, expected.size());
      functions_->softmax(x.data(), first, x.size());
      ASSERT_EQ(x, expected) << "from " << first << ", spread " << spread;
    }
  }
}

TEST_P(VectorElements, SpreadCodesPutsThemWhereTheMaskHasBits) {
  for (const size_t n : {1u, 7u, 8u, 9u, 16u, 63u, 200u}) {
    for (const uint64_t first : {0u, 1u, 7u, 8u, 13u}) {
      std::vector<std::byte> mask((first + n + 7) / 8);
      for (size_t i = 0; i < mask.size(); ++i) mask[i] = static_cast<std::byte>(i * 89 + 5 * n);
      std::vector<int16_t> stored, expected;
      for (uint64_t bit = first; bit < first + n; ++bit) {
        const bool kept = (std::to_integer<unsigned>(mask[bit / 8]) >> (bit % 8) & 1) != 0;
        if (kept) stored.push_back(static_cast<int16_t>(257 * stored.size() - 30000));
        expected.push_back(kept ? stored.back() : int16_t{0});
      }
      stored.resize(stored.size() + 8, 99);
      std::vector<int16_t> out(n + 7, 5);
      functions_->spread_codes(mask.data(), first, n, stored.data(), out.data());
      out.resize(n);
      EXPECT_EQ(out, expected) << n << " from bit " << first;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EveryTarget, VectorElements, testing::ValuesIn(VectorTargets()),
                         [](const auto& target) { return std::string(TargetName(target.param)); });

}  // namespace
}  // namespace kinglet::cpu::vector_elements_test

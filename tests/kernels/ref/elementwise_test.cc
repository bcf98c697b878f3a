#include "kernels/ref/elementwise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "tests/kernels/ref/one_node.h"

namespace kinglet::ref::elementwise_test {
namespace {

template <class T>
class RefElementwise : public testing::Test {};
using RealTypes = testing::Types<float, double>;
TYPED_TEST_SUITE(RefElementwise, RealTypes);

TYPED_TEST(RefElementwise, RootMeanSquareNormKeepsTheMean) {
  OneNode<TypeParam> one;
  const BufferId x = one.Floats({1, -1, 3, 1});
  one.Bind(RootMeanSquareNorm{x, 1, x});
  one.Run();
  // (1 + 1 + 9 + 1) / 4 + 1 = 4
  const std::vector<TypeParam> expected = {0.5, -0.5, 1.5, 0.5};
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(one.template Values<TypeParam>(x)[i], expected[i]);
}

TYPED_TEST(RefElementwise, ActivationsOfOneNumber) {
  const double e = std::exp(1.0);
  const std::pair<Activation, double> of_minus_one[] = {
      {Activation::kNone, -1},
      {Activation::kRelu, 0},
      {Activation::kGelu, -0.5 * std::erfc(std::sqrt(0.5))},
      {Activation::kSwish, -1 / (1 + e)},
      {Activation::kTanh, std::tanh(-1.0)},
      {Activation::kSigmoid, 1 / (1 + e)},
      {Activation::kLeakyRelu, -0.01},
      {Activation::kDoubleSwish, -1 / (1 + e * e)},
      {Activation::kTanhGelu, -0.5 * (1 - std::tanh(std::sqrt(2 / std::numbers::pi) * 1.044715))}};
  for (const auto& [activation, expected] : of_minus_one) {
    OneNode<TypeParam> one;
    const BufferId x = one.Floats({-1, std::numeric_limits<float>::quiet_NaN()});
    one.Bind(ApplyActivation{x, activation});
    one.Run();
    EXPECT_NEAR(double{one.template Values<TypeParam>(x)[0]}, expected, 1e-7);
    EXPECT_TRUE(std::isnan(one.template Values<TypeParam>(x)[1]));  // an overflow stays visible
  }
}

}  // namespace
}  // namespace kinglet::ref::elementwise_test

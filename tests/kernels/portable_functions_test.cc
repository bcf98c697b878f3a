// The functions of kernels/portable_functions.h against the C library's in long double, which has
// 64 bits on x86, and more on AArch64; and that their bits are those of every other machine.
#include "kernels/portable_functions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "format/digest.h"

namespace kinglet {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Numbers from `low` to `high`, one of three near 0.
std::vector<double> Arguments(double low, double high) {
  std::vector<double> arguments;
  std::mt19937_64 random(1);
  while (arguments.size() < 100'000) {
    const double x = low + (high - low) * static_cast<double>(random() >> 11) * 0x1p-53;
    arguments.push_back(random() % 3 == 0 ? std::ldexp(x, -static_cast<int>(random() % 60)) : x);
  }
  return arguments;
}

// The largest error in units of the last place, of normal results.
template <class Function, class Exact>
double WorstError(Function function, Exact exact, double low, double high) {
  double worst = 0;
  for (const double x : Arguments(low, high)) {
    const long double expected = exact(static_cast<long double>(x));
    const auto nearest = static_cast<double>(expected);
    if (!(std::fabs(nearest) >= std::numeric_limits<double>::min())) continue;
    const long double error = std::fabs(static_cast<long double>(function(x)) - expected);
    worst = std::max(worst, static_cast<double>(error / std::ldexp(1.0, std::ilogb(nearest) - 52)));
  }
  return worst;
}

TEST(PortableFunctions, AreNearTheExactOnes) {
  using Long = long double;
  const auto exp = [](Long x) { return std::exp(x); };
  EXPECT_LE(WorstError(portable::Exp, exp, -745, 709.7), 0.57);
  EXPECT_LE(WorstError(portable::Exp, exp, -1, 1), 0.57);
  const auto log = [](Long x) { return std::log(x); };
  EXPECT_LE(WorstError(portable::Log, log, 0.4, 2.5), 0.9);
  EXPECT_LE(WorstError(portable::Log, log, 0, 1e300), 0.9);
  EXPECT_LE(WorstError(
                portable::Expm1, [](Long x) { return std::expm1(x); }, -3, 3),
            3);
  const auto log1p = [](Long x) { return std::log1p(x); };
  EXPECT_LE(WorstError(portable::Log1p, log1p, -0.99, 3), 2);
  EXPECT_LE(WorstError(portable::Log1p, log1p, 0, 1e14), 2);
  const auto sigmoid = [](Long x) { return 1 / (1 + std::exp(-x)); };
  EXPECT_LE(WorstError(portable::Sigmoid, sigmoid, -40, 40), 2.5);
  EXPECT_LE(WorstError(
                portable::Tanh, [](Long x) { return std::tanh(x); }, -10, 10),
            4);
  EXPECT_LE(WorstError(
                portable::Erfc, [](Long x) { return std::erfc(x); }, -6, 26),
            8);
  const auto hypot = [](Long x) { return std::hypot(x, Long{0.75}); };
  EXPECT_LE(WorstError([](double x) { return portable::Hypot(x, 0.75); }, hypot, -2, 2), 2);
}

TEST(PortableFunctions, HaveExactSpecialValues) {
  EXPECT_EQ(portable::Exp(0), 1);
  EXPECT_EQ(portable::Exp(-kInfinity), 0);
  EXPECT_EQ(portable::Exp(kInfinity), kInfinity);
  EXPECT_EQ(portable::Exp(709.79), kInfinity);
  EXPECT_EQ(portable::Exp(-745.13), std::numeric_limits<double>::denorm_min());
  EXPECT_EQ(portable::Exp(-745.14), 0);
  EXPECT_EQ(portable::Log(1), 0);
  EXPECT_EQ(portable::Log(0), -kInfinity);
  EXPECT_EQ(portable::Log(kInfinity), kInfinity);
  EXPECT_EQ(portable::Log(std::numeric_limits<double>::denorm_min()), -1074 * std::log(2.0));
  EXPECT_EQ(portable::Expm1(0), 0);
  EXPECT_EQ(portable::Expm1(kInfinity), kInfinity);
  EXPECT_EQ(portable::Log1p(1e-300), 1e-300);
  EXPECT_EQ(portable::Sigmoid(0), 0.5);
  EXPECT_EQ(portable::Sigmoid(-kInfinity), 0);
  EXPECT_EQ(portable::Tanh(-kInfinity), -1);
  EXPECT_NEAR(portable::Erfc(0), 1, 1e-15);
  EXPECT_EQ(portable::Erfc(-kInfinity), 2);
  EXPECT_EQ(portable::Erfc(kInfinity), 0);
  EXPECT_DOUBLE_EQ(portable::Hypot(3e200, 4e200), 5e200);
  EXPECT_EQ(portable::Hypot(0, 0), 0);
  EXPECT_EQ(portable::Hypot(1, -kInfinity), kInfinity);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const auto function : {portable::Exp, portable::Log, portable::Expm1, portable::Sigmoid,
                              portable::Tanh, portable::Erfc}) {
    EXPECT_TRUE(std::isnan(function(nan)));
  }
  EXPECT_TRUE(std::isnan(portable::Log(-1)));
  EXPECT_TRUE(std::isnan(portable::Hypot(nan, 1)));
  EXPECT_TRUE(std::isnan(portable::Hypot(1, nan)));
}

// Of 100,000 results each, as this program found them on x86-64.
TEST(PortableFunctions, HaveTheBitsOfEveryMachine) {
  const auto digest = [](double (*function)(double), double low, double high) {
    std::vector<double> results = Arguments(low, high);
    for (double& x : results) x = function(x);
    return Digest64(std::as_bytes(std::span(results)));
  };
  EXPECT_EQ(digest(portable::Exp, -745, 709.7), 0x3973c965e0a244c7);
  EXPECT_EQ(digest(portable::Log, 0, 1000), 0x8d7a1852ffe00670);
  EXPECT_EQ(digest(portable::Expm1, -3, 3), 0xdde078b1f54e653f);
  EXPECT_EQ(digest(portable::Log1p, -0.99, 3), 0x4cfc44340fb5d026);
  EXPECT_EQ(digest(portable::Sigmoid, -40, 40), 0x64377bf301440a48);
  EXPECT_EQ(digest(portable::Tanh, -10, 10), 0xa931735ff4579597);
  EXPECT_EQ(digest(portable::Erfc, -6, 26), 0xa239fcb60f9f632d);
}

}  // namespace
}  // namespace kinglet

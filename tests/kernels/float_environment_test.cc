#include "kernels/float_environment.h"

#include <gtest/gtest.h>

#include <cfenv>
#include <limits>
#include <thread>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace kinglet::float_environment_test {
namespace {

// Divides at run time; the optimiser cannot do it at compile time.
float Divide(float a, float b) {
  volatile float x = a, y = b;
  return x / y;
}

TEST(FloatEnvironment, RoundsToNearestInsideAndRestoresOutside) {
  const float nearest = Divide(1, 3);
  ASSERT_EQ(std::fesetround(FE_DOWNWARD), 0);
  const float downward = Divide(1, 3);
  {
    const FloatEnvironment environment;
    EXPECT_EQ(Divide(1, 3), nearest);
  }
  EXPECT_EQ(Divide(1, 3), downward);
  std::fesetround(FE_TONEAREST);
  EXPECT_NE(nearest, downward);
}

#if defined(__SSE__)
TEST(FloatEnvironment, DenormalsAreOnInsideAndAsTheyWereOutside) {
  const unsigned saved = _mm_getcsr();
  _mm_setcsr(saved | 0x8040);  // flush to zero, denormals are zero
  const float smallest = std::numeric_limits<float>::min();
  EXPECT_EQ(Divide(smallest, 2), 0.0f);
  {
    const FloatEnvironment environment;
    EXPECT_GT(Divide(smallest, 2), 0.0f);
  }
  EXPECT_EQ(Divide(smallest, 2), 0.0f);
  _mm_setcsr(saved);
}
#endif

TEST(FloatEnvironment, ThreadsInheritIt) {
  const float nearest = Divide(1, 3);
  ASSERT_EQ(std::fesetround(FE_DOWNWARD), 0);
  float found = 0;
  {
    const FloatEnvironment environment;
    std::thread([&found] { found = Divide(1, 3); }).join();
  }
  std::fesetround(FE_TONEAREST);
  EXPECT_EQ(found, nearest);
}

TEST(FloatEnvironment, KeepsTheCallersFlags) {
  std::feclearexcept(FE_ALL_EXCEPT);
  std::feraiseexcept(FE_OVERFLOW);
  const int before = std::fetestexcept(FE_ALL_EXCEPT);
  {
    const FloatEnvironment environment;
    Divide(1, 3);
    Divide(1, 0);
    volatile long double wide = 3;
    wide = 1 / wide;
  }
  EXPECT_EQ(std::fetestexcept(FE_ALL_EXCEPT), before);
  std::feclearexcept(FE_ALL_EXCEPT);
}

}  // namespace
}  // namespace kinglet::float_environment_test

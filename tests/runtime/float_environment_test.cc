#include "runtime/float_environment.h"

#include <gtest/gtest.h>

#include <cfenv>
#include <limits>
#include <vector>

#include "format/writer.h"
#include "runtime/session.h"
#include "tests/support/model_builder.h"

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

TEST(FloatEnvironment, TheCallersRoundingDoesNotChangeAModelsBits) {
  TinyOptions options;
  options.quantised = true;
  options.cache_capacity = 4;
  const std::vector<std::byte> bytes = *SerialiseModel(TinyMicronet(options));
  std::vector<std::vector<double>> answers;
  for (int rounding : {FE_TONEAREST, FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO}) {
    std::vector<double> all;
    // Opening a model computes too: it decodes weights and computes constants.
    std::fesetround(rounding);
    const auto model = Model::FromBytes(bytes, {});
    ASSERT_TRUE(model.ok()) << model.status().message();
    const auto session = *Session::Create(*model);
    for (uint32_t id : {1u, 5u, 1u, 20u, 5u}) {
      std::vector<double> step(options.vocabulary_size);
      const bool ok =
          session->StepToken(id).ok() && session->LogProbabilities(std::span<double>(step)).ok();
      EXPECT_EQ(std::fegetround(), rounding);
      EXPECT_TRUE(ok);
      all.insert(all.end(), step.begin(), step.end());
    }
    std::fesetround(FE_TONEAREST);
    answers.push_back(all);
  }
  for (const std::vector<double>& answer : answers) EXPECT_EQ(answers[0], answer);
}

}  // namespace
}  // namespace kinglet::float_environment_test

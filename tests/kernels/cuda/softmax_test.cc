// The results of each of the three steps; the conformance test sees only the last.
#include "kernels/cuda/softmax.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/ref/softmax.h"
#include "tests/support/case_builder.h"

namespace kinglet::cuda::softmax_test {
namespace {

TEST(CudaSoftmax, EachStepLeavesWhatTheNextReads) {
  for (const uint32_t n : {1u, 31u, 32u, 1024u, 1025u, 5000u}) {
    CaseBuilder builder("logits", n);
    const std::vector<float> x = builder.RandomReals(n, Fill::kRandom);
    const auto blocks = static_cast<uint32_t>(SumBlocks(n));
    std::vector<float> memory(n + 2 * blocks + 2);
    std::copy(x.begin(), x.end(), memory.begin());
    Lane lane{};
    lane.scratch = reinterpret_cast<std::byte*>(memory.data());
    Logits logits{};
    logits.count = n;
    logits.largest = {Space::kScratch, n * sizeof(float)};
    logits.blocks = logits.largest.Plus(blocks * sizeof(float));
    logits.normaliser = logits.blocks.Plus(blocks * sizeof(float));
    std::vector<std::byte> shared(65536);
    const Block block(64, shared.data(), Order::kBackward);
    for (uint32_t unit = 0; unit < blocks; ++unit) {
      cuda::Run(LargestOfBlocks{logits}, Work{&lane, 1, unit, block});
    }
    for (uint32_t unit = blocks; unit-- > 0;) {
      cuda::Run(ExponentialsOfBlocks{logits}, Work{&lane, 1, unit, block});
    }
    cuda::Run(LogOfSum{{}, logits}, Work{&lane, 1, 0, block});
    const float largest = ref::Largest(x.data(), n);
    for (uint32_t b = 0; b < blocks; ++b) {
      const uint32_t size = std::min(n - b * kSumBlock, kSumBlock);
      EXPECT_EQ(memory[n + b], ref::Largest(x.data() + b * kSumBlock, size));
    }
    std::vector<float> exponentials;
    for (const float logit : x) exponentials.push_back(Exp(logit - largest));
    EXPECT_EQ(memory[n + 2 * blocks], largest);
    EXPECT_EQ(memory[n + 2 * blocks + 1], Log(ref::Sum(exponentials.data(), n))) << n;
  }
}

// Every 97th float from -0 to minus infinity, and all floats where the result becomes denormal and
// 0.
TEST(CudaSoftmax, ExponentialsOfAtMostZeroAreTheSameWithoutABranch) {
  const auto expect_same = [](uint32_t bits) {
    const float x = kinglet::internal::FloatFromBits(bits);
    ASSERT_EQ(kinglet::internal::BitsFromFloat(ExpOfAtMostZero(x)),
              kinglet::internal::BitsFromFloat(Exp(x)))
        << x;
  };
  constexpr uint32_t kMinusZero = 0x80000000u, kMinusInfinity = 0xff800000u;
  for (uint32_t bits = kMinusZero; bits < kMinusInfinity; bits += 97) expect_same(bits);
  for (uint32_t bits = kinglet::internal::BitsFromFloat(-86.5f);
       bits < kinglet::internal::BitsFromFloat(-104.5f); ++bits)
    expect_same(bits);
  expect_same(kMinusInfinity);
  expect_same(0);
  for (const uint32_t nan : {0x7fc00000u, 0xffc00000u, 0x7f800001u, 0xffffffffu}) {
    EXPECT_TRUE(std::isnan(ExpOfAtMostZero(kinglet::internal::FloatFromBits(nan))));
  }
}

}  // namespace
}  // namespace kinglet::cuda::softmax_test

// The results of each of the three nodes; the conformance test sees only the last.
#include "kernels/cuda/softmax.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/ref/softmax.h"
#include "tests/support/case_builder.h"

namespace kinglet::cuda::softmax_test {
namespace {

TEST(CudaSoftmax, EachNodeLeavesWhatTheNextReads) {
  for (const uint32_t n : {1u, 31u, 32u, 1024u, 1025u, 5000u}) {
    CaseBuilder builder("logits", n);
    std::vector<float> x = builder.RandomFloats(n, Fill::kRandom);
    if (n % 2 == 1) {
      for (float& logit : x) logit += 90;
    }
    const auto tiles = static_cast<uint32_t>(SumTiles(n));
    std::vector<float> memory(n + 2 * tiles + LogSumExp::kCount);
    std::copy(x.begin(), x.end(), memory.begin());
    Lane lane{};
    lane.scratch = reinterpret_cast<std::byte*>(memory.data());
    Logits logits{};
    logits.count = n;
    logits.largest = {Space::kScratch, n * sizeof(float)};
    logits.sums = logits.largest.Plus(tiles * sizeof(float));
    logits.normaliser = logits.sums.Plus(tiles * sizeof(float));
    std::vector<std::byte> shared(65536);
    const Block block(64, shared.data(), Order::kBackward);
    for (uint32_t item = 0; item < tiles; ++item) {
      cuda::Run(SumsOfTiles{logits}, Work{&lane, 1, item, block});
    }
    cuda::Run(LogOfSum{{}, logits}, Work{&lane, 1, 0, block});
    const float largest = ref::Largest(x.data(), n);
    for (uint32_t b = 0; b < tiles; ++b) {
      const uint32_t size = std::min(n - b * kSumTile, kSumTile);
      EXPECT_EQ(memory[n + b], ref::Largest(x.data() + b * kSumTile, size));
    }
    const float reference = SoftmaxReference(largest);
    EXPECT_EQ(memory[n + 2 * tiles], reference);
    EXPECT_EQ(memory[n + 2 * tiles + 2], largest);
    double total = 0;
    for (uint32_t b = 0; b < tiles; ++b) {
      double sum = 0;
      for (uint32_t i = b * kSumTile; i < std::min(n, (b + 1) * kSumTile); ++i) {
        sum += std::exp(static_cast<double>(x[i]) - static_cast<double>(reference));
      }
      EXPECT_NEAR(memory[n + tiles + b], sum, 1e-6 * sum) << n << " " << b;
      total += sum;
    }
    EXPECT_NEAR(memory[n + 2 * tiles + 1], std::log(total), 1e-6) << n;
  }
}

}  // namespace
}  // namespace kinglet::cuda::softmax_test

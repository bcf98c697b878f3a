// AddOne over several work items, and rounding. The conformance test has the other nodes on
// vectors.
#include "kernels/cuda/vectors.h"

#include <gtest/gtest.h>

#include <vector>

namespace kinglet::cuda::vectors_test {
namespace {

TEST(CudaVectors, OneNumberIsAddedToEveryPart) {
  for (const uint32_t n : {1u, 4096u, 4097u, 10000u}) {
    std::vector<float> memory(n + 1, 1.0f);
    memory[n] = 2.5f;
    Lane lane{};
    lane.scratch = reinterpret_cast<std::byte*>(memory.data());
    AddOne add{};
    add.x = {Space::kScratch, n * sizeof(float)};
    add.count = n;
    const Block block(64, nullptr);
    ASSERT_EQ(add.WorkItems(1, block.warps()), (n + kElementPart - 1) / kElementPart);
    for (uint32_t item = 0; item < add.WorkItems(1, block.warps()); ++item) {
      cuda::Run(add, Work{&lane, 1, item, block});
    }
    for (uint32_t i = 0; i < n; ++i) ASSERT_EQ(memory[i], 3.5f) << i;
    EXPECT_EQ(memory[n], 2.5f);
  }
}

TEST(CudaVectors, RoundingIsHalfToEvenWithinTheLimit) {
  const Rounding rounding = {2.0f, 0.5f};
  EXPECT_EQ(rounding(0.25f), 0);
  EXPECT_EQ(rounding(0.75f), 2);
  EXPECT_EQ(rounding(-0.75f), -2);
  EXPECT_EQ(rounding(100.0f), 4);
  EXPECT_EQ(rounding(-100.0f), -4);
}

}  // namespace
}  // namespace kinglet::cuda::vectors_test

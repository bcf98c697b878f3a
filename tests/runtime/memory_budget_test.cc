#include "runtime/memory_budget.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace kinglet::memory_budget_test {
namespace {

TEST(MemoryBudget, GivesNoMoreThanThereIs) {
  const auto budget = std::make_shared<MemoryBudget>(100);
  EXPECT_TRUE(budget->Claim(60));
  EXPECT_FALSE(budget->Claim(41));
  EXPECT_FALSE(budget->Claim(MemoryBudget::kNoLimit));
  EXPECT_EQ(budget->left(), 40u);
  {
    ASSERT_TRUE(budget->Claim(40));
    MemoryClaim claim(budget, 40);
    MemoryClaim moved(std::move(claim));
    claim = std::move(moved);
    EXPECT_EQ(budget->left(), 0u);
    EXPECT_TRUE(budget->Claim(0));
  }
  EXPECT_EQ(budget->left(), 40u);
}

TEST(MemoryBudget, ThreadsNeverTakeMoreTogether) {
  const auto budget = std::make_shared<MemoryBudget>(1000);
  std::atomic<int> taken{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 1000; ++j) {
        if (budget->Claim(7)) ++taken;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(taken, 1000 / 7);
}

}  // namespace
}  // namespace kinglet::memory_budget_test

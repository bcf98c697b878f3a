#include "converters/thread_shares.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace kinglet::thread_shares_test {
namespace {

TEST(RunShares, DoesEveryShareOnceAndTheFirstHere) {
  for (const size_t threads : {1u, 2u, 3u, 17u}) {
    std::vector<std::atomic<int>> done(threads);
    std::thread::id first;
    RunShares(threads, [&](size_t share) {
      ++done[share];
      if (share == 0) first = std::this_thread::get_id();
    });
    for (size_t share = 0; share < threads; ++share) EXPECT_EQ(done[share], 1) << share;
    EXPECT_EQ(first, std::this_thread::get_id());
  }
}

TEST(MachineThreads, IsAtLeastOne) { EXPECT_GE(MachineThreads(), 1u); }

}  // namespace
}  // namespace kinglet::thread_shares_test

#include "converters/thread_shares.h"

#include <gtest/gtest.h>

#include <atomic>
#include <new>
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

TEST(RunShares, ThrowsBadAllocWhenAllSharesHaveEnded) {
  for (const size_t failing : {0u, 2u}) {
    std::atomic<int> ended = 0;
    const auto run = [&] {
      RunShares(4, [&](size_t share) {
        if (share == failing) throw std::bad_alloc();
        ++ended;
      });
    };
    EXPECT_THROW(run(), std::bad_alloc);
    EXPECT_EQ(ended, 3);
  }
}

TEST(RunRanges, CoverEveryNumberOnce) {
  for (const uint64_t count : {0u, 1u, 5u, 100u}) {
    for (const size_t threads : {1u, 2u, 7u}) {
      std::vector<std::atomic<int>> done(count);
      std::atomic<uint64_t> longest = 0;
      RunRanges(count, threads, [&](uint64_t first, uint64_t end) {
        for (uint64_t i = first; i < end; ++i) ++done[i];
        uint64_t known = longest;
        while (end - first > known && !longest.compare_exchange_weak(known, end - first)) {
        }
      });
      for (const auto& times : done) EXPECT_EQ(times, 1);
      EXPECT_EQ(longest, (count + threads - 1) / threads);
    }
  }
}

TEST(MachineThreads, IsAtLeastOne) { EXPECT_GE(MachineThreads(), 1u); }

}  // namespace
}  // namespace kinglet::thread_shares_test

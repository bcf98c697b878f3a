// Threads among which chunks are divided: each chunk runs once, no thread waits in vain, workers
// sleep between calls.
#include "runtime/worker_team.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <limits>
#include <new>
#include <thread>
#include <vector>

#include "tests/support/processor_time.h"

namespace kinglet::worker_team_test {
namespace {

TEST(WorkerTeam, RunsEveryChunkOnce) {
  for (const size_t threads : {1u, 2u, 3u, 8u}) {
    const auto team = *WorkerTeam::Create(threads);
    EXPECT_EQ(team->size(), threads);
    for (const size_t count : {0u, 1u, 2u, 3u, 7u, 64u, 1000u}) {
      for (int round = 0; round < 40; ++round) {
        team->Wake();
        // Not atomic: the caller sees what workers wrote when Run returns.
        std::vector<int> runs(count);
        team->Run(count, [&](Chunks chunks) {
          for (size_t i = chunks.begin; i < chunks.end; ++i) ++runs[i];
        });
        ASSERT_EQ(runs, std::vector<int>(count, 1)) << threads << " threads";
        if (round % 3 == 0) team->Sleep();
      }
    }
  }
}

// Pieces of work in quick succession, so that workers are late for most of them.
TEST(WorkerTeam, ALateWorkerTakesNoChunkOfOldWork) {
  const auto team = *WorkerTeam::Create(4);
  team->Wake();
  for (size_t work = 0; work < 20'000; ++work) {
    const size_t count = 2 + work % 3;
    size_t seen[4] = {};
    team->Run(count, [&seen, work](Chunks chunks) {
      for (size_t i = chunks.begin; i < chunks.end; ++i) seen[i] = work + 1;
    });
    for (size_t i = 0; i < count; ++i) ASSERT_EQ(seen[i], work + 1);
  }
  team->Sleep();
}

TEST(WorkerTeam, WorkersTakePartOnlyWhileTheyAreAwake) {
  const auto team = *WorkerTeam::Create(2);
  const std::thread::id caller = std::this_thread::get_id();
  team->Run(1000, [&](Chunks chunks) {
    EXPECT_EQ(chunks.end - chunks.begin, 1000u);
    EXPECT_EQ(std::this_thread::get_id(), caller);
  });
  team->Wake();
  // The thread with the first chunk waits until another one has taken the second.
  std::atomic<int> there{0};
  team->Run(2, [&](Chunks) {
    ++there;
    while (there < 2) std::this_thread::yield();
  });
  team->Sleep();
}

TEST(WorkerTeam, WorkersComputeByRule7AndHandleNoSignals) {
  const auto team = *WorkerTeam::Create(2);
  const std::thread::id caller = std::this_thread::get_id();
  team->Wake();
  std::atomic<bool> looked{false};
  team->Run(2, [&](Chunks) {
    if (std::this_thread::get_id() == caller) {
      while (!looked) std::this_thread::yield();
      return;
    }
    volatile float smallest = std::numeric_limits<float>::min();
    EXPECT_GT(smallest / 2.0f, 0.0f);  // a denormal
    sigset_t blocked;
    ASSERT_EQ(pthread_sigmask(SIG_BLOCK, nullptr, &blocked), 0);
    EXPECT_EQ(sigismember(&blocked, SIGINT), 1);
    EXPECT_EQ(sigismember(&blocked, SIGALRM), 1);
    looked = true;
  });
  sigset_t own;
  ASSERT_EQ(pthread_sigmask(SIG_BLOCK, nullptr, &own), 0);
  EXPECT_EQ(sigismember(&own, SIGALRM), 0);
}

TEST(WorkerTeam, MemoryThatRunsOutInAnyThreadIsTheCallersError) {
  const auto team = *WorkerTeam::Create(3);
  for (const bool awake : {false, true}) {
    if (awake) team->Wake();
    for (size_t bad = 0; bad < 20; ++bad) {
      std::atomic<size_t> done{0};
      const auto work = [&](Chunks chunks) {
        if (chunks.begin <= bad && bad < chunks.end) throw std::bad_alloc();
        done += chunks.end - chunks.begin;
      };
      EXPECT_THROW(team->Run(20, work), std::bad_alloc);
      EXPECT_LT(done, 20u);
    }
    size_t whole = 0;
    team->Run(1, [&](Chunks chunks) { whole = chunks.end; });
    EXPECT_EQ(whole, 1u);
  }
}

TEST(WorkerTeam, UsesNoProcessorWhileItSleeps) {
  std::vector<std::unique_ptr<WorkerTeam>> teams;
  for (int i = 0; i < 10; ++i) {
    teams.push_back(*WorkerTeam::Create(2));
    teams.back()->Wake();
    teams.back()->Run(100, [](Chunks) {});
    teams.back()->Sleep();
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const double before = ProcessorSeconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_LT(ProcessorSeconds() - before, 0.02);
}

}  // namespace
}  // namespace kinglet::worker_team_test

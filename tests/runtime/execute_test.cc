// Phases divided among threads: each chunk runs once on each frame, for any division of the work.
#include "runtime/execute.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace kinglet::execute_test {
namespace {

TEST(RunPhase, RunsEveryChunkOnceOnEveryFrame) {
  for (const size_t threads : {1u, 2u, 5u}) {
    const auto team = *WorkerTeam::Create(threads);
    team->Wake();
    for (const size_t frame_count : {1u, 2u, 3u, 17u}) {
      for (const size_t chunks : {1u, 2u, 3u, 4u, 40u}) {
        for (const bool share : {false, true}) {
          std::vector<std::vector<int>> runs(frame_count, std::vector<int>(chunks));
          std::vector<StreamFrame> frames(frame_count);
          for (size_t i = 0; i < frame_count; ++i) frames[i].position = i;
          const auto run = [&runs](std::span<StreamFrame> some, Chunks part) {
            EXPECT_FALSE(some.empty());
            for (const StreamFrame& frame : some) {
              for (size_t p = part.begin; p < part.end; ++p) ++runs[frame.position][p];
            }
          };
          for (int round = 1; round <= 20; ++round) {
            RunPhase({run, chunks, share}, frames, *team);
            ASSERT_EQ(runs, std::vector(frame_count, std::vector<int>(chunks, round)));
          }
        }
      }
    }
  }
}

TEST(RunPhase, ChunksOfSharedMemoryRunOnAllFramesAtOnce) {
  const auto team = *WorkerTeam::Create(2);
  team->Wake();
  std::vector<StreamFrame> frames(9);
  const auto all = [](std::span<StreamFrame> some, Chunks) { EXPECT_EQ(some.size(), 9u); };
  for (int round = 0; round < 100; ++round) RunPhase({all, 16, true}, frames, *team);
}

TEST(RunPhase, StopsBetweenPiecesOnceCancelled) {
  constexpr size_t kChunks = 20000;
  const auto team = *WorkerTeam::Create(2);
  team->Wake();
  for (const size_t frame_count : {1u, 3u}) {
    for (const bool share : {false, true}) {
      std::vector<StreamFrame> frames(frame_count);
      CancelFlag cancel{false};
      std::atomic<size_t> done = 0;
      const auto run = [&](std::span<StreamFrame> some, Chunks part) {
        done += (part.end - part.begin) * some.size();
        cancel = true;
      };
      const Phase phase = {run, kChunks, share};
      EXPECT_FALSE(RunPhase(phase, frames, *team, &cancel));
      EXPECT_LE(done, 8192u);
      done = 0;
      EXPECT_TRUE(RunPhase(phase, frames, *team));
      EXPECT_EQ(done, kChunks * frame_count);
      done = 0;
      const Kernel kernel = {{phase, phase}};
      EXPECT_FALSE(kernel.Run(frames, [&] { return done > 0; }));
      EXPECT_LE(done, 8192u);
      done = 0;
      kernel.Run(frames);
      EXPECT_EQ(done, 2 * kChunks * frame_count);
    }
  }
}

TEST(RunChunks, WithoutATeamTheCallerRunsTheChunks) {
  size_t end = 0;
  RunChunks(
      1000, [&](Chunks chunks) { end = chunks.end; }, nullptr);
  EXPECT_EQ(end, 1000u);
}

}  // namespace
}  // namespace kinglet::execute_test

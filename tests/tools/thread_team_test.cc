#include "tools/thread_team.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

namespace kinglet::thread_team_test {
namespace {

TEST(ThreadTeam, RunsEachShareOnceInAThreadOfItsOwn) {
  for (const size_t threads : {1u, 2u, 5u}) {
    const auto team = *ThreadTeam::Create(threads);
    ASSERT_EQ(team->size(), threads);
    std::vector<int> runs(threads);
    std::vector<std::thread::id> who(threads);
    for (int round = 1; round <= 50; ++round) {
      team->Run([&](size_t share) {
        ++runs[share];
        who[share] = std::this_thread::get_id();
      });
      // Run has returned, so all parts are done and visible.
      EXPECT_EQ(runs, std::vector<int>(threads, round));
      EXPECT_EQ(who[0], std::this_thread::get_id());
      EXPECT_EQ(std::set<std::thread::id>(who.begin(), who.end()).size(), threads);
    }
  }
}

TEST(ThreadTeam, GoesHomeWithoutEverHavingWorked) { EXPECT_TRUE(ThreadTeam::Create(3).ok()); }

}  // namespace
}  // namespace kinglet::thread_team_test

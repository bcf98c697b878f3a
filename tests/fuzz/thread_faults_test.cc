// Threads that the system refuses to start (EAGAIN), and memory that runs out while threads are
// started: the work is done with fewer threads, or there is one error; nothing hangs and nothing
// ends the process.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <functional>
#include <memory>
#include <new>
#include <numeric>
#include <string>
#include <vector>

#include "converters/thread_shares.h"
#include "runtime/session.h"
#include "tests/support/fail_each_allocation.h"
#include "tests/support/model_builder.h"
#include "tools/thread_team.h"

namespace {

// Threads that may still start; negative: any number.
std::atomic<int> threads_left{-1};
std::atomic<int> refused{0};

}  // namespace

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*run)(void*), void* argument) noexcept {
  if (threads_left == 0) {
    ++refused;
    return EAGAIN;
  }
  if (threads_left > 0) --threads_left;
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto create = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  return create(thread, attributes, run, argument);
}

namespace kinglet::thread_faults_test {
namespace {

constexpr size_t kThreads = 7;

// Calls run(number of threads that may start) for 0, 1, .., until no thread was refused. Returns
// how many threads the last call started.
int RefuseEachThread(const std::function<void(int)>& run) {
  for (int good = 0; good < 100; ++good) {
    refused = 0;
    threads_left = good;
    run(good);
    threads_left = -1;
    if (refused == 0) return good;
  }
  return -1;
}

TEST(RefusedThreads, SharesAreDoneByOthers) {
  const int started = RefuseEachThread([](int) {
    std::vector<std::atomic<int>> done(kThreads);
    RunShares(kThreads, [&](size_t share) { ++done[share]; });
    for (const auto& times : done) EXPECT_EQ(times, 1);
  });
  EXPECT_EQ(started, static_cast<int>(kThreads) - 1);
}

TEST(RefusedThreads, ATeamIsRefusedAndLeavesNoThread) {
  const int started = RefuseEachThread([](int good) {
    const auto team = ThreadTeam::Create(kThreads);
    if (good < static_cast<int>(kThreads) - 1) {
      EXPECT_EQ(team.status().code(), KINGLET_OUT_OF_MEMORY);
      EXPECT_EQ(team.status().message(),
                "threads: 7 threads: expected that many from the system, found " +
                    std::to_string(good + 1));
      return;
    }
    ASSERT_TRUE(team.ok());
    std::atomic<int> done = 0;
    (*team)->Run([&](size_t) { ++done; });
    EXPECT_EQ(done, static_cast<int>(kThreads));
  });
  EXPECT_EQ(started, static_cast<int>(kThreads) - 1);
}

// A session starts no more threads than there are processors.
TEST(RefusedThreads, ASessionIsRefusedAndTheModelContinues) {
  const auto model = *Model::FromBytes(*SerialiseModel(TinyMicronet()), {});
  const int started = RefuseEachThread([&](int good) {
    SessionOptions options;
    options.threads = kThreads;
    const auto session = Session::Create(model, options);
    EXPECT_EQ(session.ok(), refused == 0) << good;
    if (!session.ok()) {
      EXPECT_EQ(session.status().code(), KINGLET_OUT_OF_MEMORY);
      EXPECT_NE(session.status().message().find("threads"), std::string::npos);
    } else {
      EXPECT_TRUE((*session)->StepToken(1).ok());
    }
  });
  EXPECT_GE(started, 0);
  EXPECT_TRUE((*Session::Create(model, {}))->StepToken(1).ok());
}

// --- memory that runs out meanwhile

template <class Call>
kinglet_status CodeOf(const Call& call) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return KINGLET_OUT_OF_MEMORY;
  }
}

TEST(RefusedThreads, SharesWithoutMemory) {
  FailEachAllocation(
      "four shares",
      [] {
        return CodeOf([] {
          std::atomic<int> done{0};
          RunShares(4, [&](size_t) { done += static_cast<int>(std::vector<int>(100).size()); });
          return done == 400 ? KINGLET_OK : KINGLET_INTERNAL;
        });
      },
      [] {}, kRepeatable);
}

TEST(RefusedThreads, ATeamWithoutMemory) {
  FailEachAllocation(
      "a team of four", [] { return CodeOf([] { return ThreadTeam::Create(4).status().code(); }); },
      [] {}, kRepeatable);
}

TEST(RefusedThreads, ASessionWithoutMemory) {
  const auto model = *Model::FromBytes(*SerialiseModel(TinyMicronet()), {});
  SessionOptions options;
  options.threads = 4;
  FailEachAllocation(
      "a session of four threads",
      [&] { return CodeOf([&] { return Session::Create(model, options).status().code(); }); },
      [] {}, kRepeatable);
}

}  // namespace
}  // namespace kinglet::thread_faults_test

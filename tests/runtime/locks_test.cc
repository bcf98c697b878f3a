// Steps and queries of `ref` and `cpu` wait for no thread: this program counts the calls of its own
// pthread_mutex_lock, which replaces the system's.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <vector>

#include "runtime/session.h"
#include "tests/runtime/session_fixture.h"

namespace {
std::atomic<uint64_t> locks{0};
}  // namespace

extern "C" int pthread_mutex_lock(pthread_mutex_t* mutex) {
  using Lock = int (*)(pthread_mutex_t*);
  static const Lock lock = reinterpret_cast<Lock>(dlsym(RTLD_NEXT, "pthread_mutex_lock"));
  locks.fetch_add(1, std::memory_order_relaxed);
  return lock(mutex);
}

namespace kinglet::locks_test {
namespace {

TEST(Locks, AreCounted) {
  std::mutex mutex;
  const uint64_t before = locks;
  mutex.lock();
  mutex.unlock();
  EXPECT_EQ(locks, before + 1);
}

void AskEverything(Session& session, uint32_t token) {
  const uint32_t lanes[] = {1, 0};
  const uint32_t ids[] = {token % 23, token % 19};
  const uint64_t seeds[] = {token, 5};
  double numbers[2];
  uint32_t words[2];
  ASSERT_TRUE(session.StepLanes(lanes, ids).ok());
  ASSERT_TRUE(session.LogProbability(3).ok());
  ASSERT_TRUE(session.LogProbabilitiesOf(ids, numbers).ok());
  ASSERT_TRUE(session.TopK(5).ok());
  ASSERT_TRUE(session.Draw(token, {}, 1).ok());
  ASSERT_TRUE(session.TopP(0.9).ok());
  ASSERT_TRUE(session.Rank(4).ok());
  ASSERT_TRUE(session.WithPrefix("w").ok());
  ASSERT_TRUE(session.NextCharacters("w").ok());
  ASSERT_TRUE(session.IntervalOf(4).ok());
  ASSERT_TRUE(session.TopKLanes(lanes, 3).ok());
  ASSERT_TRUE(session.DrawLanes(lanes, seeds, {.temperature = 1.1}, words).ok());
  ASSERT_TRUE(session.LogProbabilityLanes(lanes, ids, numbers).ok());
  ASSERT_EQ(Full(session).size(), 23u);
  ASSERT_TRUE(session.Fork(0, 1).ok());
  const auto state = session.Save();
  ASSERT_TRUE(state.ok());
  ASSERT_TRUE(session.Restore(*state, 1).ok());
  ASSERT_TRUE(session.Reset(1).ok());
}

TEST(Locks, NoLockIsTakenInStepsAndQueries) {
  for (const char* const backend : {"ref", "cpu"}) {
    for (const bool quantised : {false, true}) {
      TinyOptions options;
      options.quantised = quantised;
      options.cache_capacity = 4;
      const auto model = Open(TinyMicronet(options), backend);
      const auto session = Start(model, {.lanes = 2, .threads = 2});
      const uint64_t before = locks;
      for (uint32_t token = 0; token < 20; ++token) AskEverything(*session, token);
      EXPECT_EQ(locks, before) << backend;
    }
  }
}

}  // namespace
}  // namespace kinglet::locks_test

// A thread that waits for a number to change is woken each time, however late or early the change.
#include "format/thread_wait.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>

namespace kinglet::thread_wait_test {
namespace {

// Two threads in turn, each of which waits for the other; a lost wake ends neither.
TEST(ThreadWait, LosesNoWake) {
  constexpr uint32_t kTurns = 20'000;
  std::atomic<uint32_t> asked{0}, answered{0};
  std::thread other([&] {
    for (uint32_t turn = 0; turn < kTurns; ++turn) {
      system::WaitWhile(asked, turn);
      answered = turn + 1;
      system::WakeAll(answered);
    }
  });
  for (uint32_t turn = 0; turn < kTurns; ++turn) {
    // The change comes at another moment of the other thread's way to its wait each time.
    for (std::atomic<uint32_t> delay{turn % 5'000}; delay > 0; --delay) {
    }
    asked = turn + 1;
    system::WakeAll(asked);
    system::WaitWhile(answered, turn);
  }
  other.join();
  EXPECT_EQ(answered, kTurns);
}

TEST(ThreadWait, DoesNotWaitForANumberThatHasChanged) {
  const std::atomic<uint32_t> number{2};
  system::WaitWhile(number, 1);
}

}  // namespace
}  // namespace kinglet::thread_wait_test

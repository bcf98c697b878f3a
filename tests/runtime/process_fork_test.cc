// fork(2) of a process with open sessions: the child continues with them, and closes them.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <vector>

#include "runtime/session.h"
#include "tests/runtime/session_fixture.h"

namespace kinglet::process_fork_test {
namespace {

TinyOptions EnoughWordsToWakeWorkers() {
  TinyOptions options;
  options.vocabulary = false;
  options.vocabulary_size = 300'000;
  options.cache_capacity = 7;
  return options;
}

// Runs `child` in a child process; its result, or -1 if it has not ended after a minute.
template <class Child>
int InChild(const Child& child) {
  const pid_t id = fork();
  if (id == 0) {
    alarm(60);  // it does not outlive a test that waits in vain
    _exit(child() ? 0 : 1);
  }
  int status = 0;
  if (id < 0 || waitpid(id, &status, 0) != id) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(ProcessFork, TheChildContinuesWithSessionsAndClosesThem) {
  for (const char* const backend : {"cpu", "ref"}) {
    for (const uint32_t threads : {1u, 2u, 4u}) {
      auto model = Open(TinyMicronet(EnoughWordsToWakeWorkers()), backend);
      const auto expected = Start(model);
      auto session = Start(model, {.threads = threads});
      for (const uint32_t id : {3u, 299'999u, 70u}) {
        ASSERT_TRUE(expected->StepToken(id).ok());
        ASSERT_TRUE(session->StepToken(id).ok());
        ASSERT_EQ(Full(*session), Full(*expected));
      }
      ASSERT_TRUE(expected->StepToken(9).ok());
      const std::vector<double> answer = Full(*expected);
      const auto go_on = [&] {
        const bool equal = session->StepToken(9).ok() && Full(*session) == answer;
        const bool saved = session->Save().ok();
        session.reset();
        model.reset();
        return equal && saved;
      };
      EXPECT_EQ(InChild(go_on), 0) << backend << ", threads: " << threads;
      // The child's calls do not change the parent.
      ASSERT_TRUE(session->StepToken(9).ok());
      EXPECT_EQ(Full(*session), answer);
    }
  }
}

// A session that the child did not use is closed as well.
TEST(ProcessFork, TheChildClosesWhatItNeverUsed) {
  const auto model = Open(TinyMicronet(EnoughWordsToWakeWorkers()), "cpu");
  auto session = Start(model, {.threads = 3});
  EXPECT_EQ(InChild([&] {
              session.reset();
              return true;
            }),
            0);
}

}  // namespace
}  // namespace kinglet::process_fork_test

// Signals that arrive while a session computes, handled without SA_RESTART: the same bits, and no
// call fails.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/time.h>

#include <atomic>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "runtime/prefix_tree.h"
#include "runtime/session.h"
#include "tests/support/model_builder.h"

namespace kinglet::signals_test {
namespace {

volatile sig_atomic_t signals = 0;

// SIGALRM every 100 microseconds.
class Alarms {
 public:
  Alarms() {
    signals = 0;
    struct sigaction action {};
    action.sa_handler = [](int) { signals = signals + 1; };
    EXPECT_EQ(sigaction(SIGALRM, &action, &before_), 0);
    const itimerval often = {{0, 100}, {0, 100}};
    EXPECT_EQ(setitimer(ITIMER_REAL, &often, nullptr), 0);
  }
  ~Alarms() {
    const itimerval never = {};
    setitimer(ITIMER_REAL, &never, nullptr);
    sigaction(SIGALRM, &before_, nullptr);
  }

 private:
  struct sigaction before_ {};
};

// Opens the file, steps, makes all queries that compute much, and saves.
Status LiveOnce(const std::string& path, std::vector<double>& found) {
  KINGLET_ASSIGN_OR_RETURN(const auto model, Model::Open(path, {}));
  SessionOptions options;
  options.lanes = 3;
  options.threads = 2;
  KINGLET_ASSIGN_OR_RETURN(const auto session, Session::Create(model, options));
  for (uint32_t t = 0; t < 20; ++t) {
    const uint32_t lanes[] = {0, 1, 2}, ids[] = {t % 23, (t * 5) % 23, (t * 7 + 1) % 23};
    KINGLET_RETURN_IF_ERROR(session->StepLanes(lanes, ids));
    std::vector<double> all(23);
    KINGLET_RETURN_IF_ERROR(session->LogProbabilities(all, 1));
    found.insert(found.end(), all.begin(), all.end());
    KINGLET_ASSIGN_OR_RETURN(const uint32_t drawn, session->Draw(t, {.temperature = 0.9}, 2));
    found.push_back(drawn);
    KINGLET_ASSIGN_OR_RETURN(const State state, session->Save(1));
    KINGLET_RETURN_IF_ERROR(session->Restore(state, 0));
  }
  const uint32_t parents[] = {kNoParent, 0, 1, 1, 0, 4, 3}, ids[] = {1, 3, 4, 5, 6, 7, 8};
  std::vector<double> values(7);
  KINGLET_RETURN_IF_ERROR(ScoreTree(parents, ids, *session, values).status());
  found.insert(found.end(), values.begin(), values.end());
  return Status();
}

TEST(Signals, DuringEveryCallChangeNothing) {
  const auto bytes = *SerialiseModel(TinyMicronet({.cache_capacity = 4}));
  const std::string path = testing::TempDir() + "kinglet_signals.kgl";
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  std::vector<double> expected;
  ASSERT_TRUE(LiveOnce(path, expected).ok());
  const Alarms alarms;
  int lives = 0;
  for (; signals < 200 && lives < 100'000; ++lives) {
    std::vector<double> found;
    const Status status = LiveOnce(path, found);
    ASSERT_TRUE(status.ok()) << status.message();
    ASSERT_EQ(found, expected);
  }
  EXPECT_GE(signals, 200);
}

}  // namespace
}  // namespace kinglet::signals_test

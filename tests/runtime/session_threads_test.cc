// Sessions whose threads share the work of a call: no answer changes by a bit.
#include <gtest/gtest.h>

#include <chrono>
#include <ctime>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "runtime/session.h"
#include "tests/runtime/session_fixture.h"

namespace kinglet::session_threads_test {
namespace {

// Enough words for each query to wake the workers.
TinyOptions ManyWords(bool quantised) {
  TinyOptions options;
  options.quantised = quantised;
  options.vocabulary = false;
  options.vocabulary_size = 300'000;
  options.cache_capacity = 70;
  return options;
}

// The answers of a session about a few tokens.
std::vector<double> Answers(Session& session, const std::vector<uint32_t>& ids) {
  std::vector<double> answers;
  for (const uint32_t id : ids) {
    EXPECT_TRUE(session.StepToken(id).ok());
    const std::vector<Candidate> best = session.TopK(20).value();
    for (const Candidate& word : best) {
      answers.push_back(static_cast<double>(word.id));
      answers.push_back(word.log_probability);
    }
    answers.push_back(*session.LogProbability(id / 2));
    answers.push_back(*session.Sample(id, 1.3));
    const std::vector<double> all = Full(session);
    answers.insert(answers.end(), all.begin(), all.end());
  }
  std::vector<double> probabilities(session.model().vocabulary_size());
  EXPECT_TRUE(session.Probabilities(std::span<double>(probabilities)).ok());
  answers.insert(answers.end(), probabilities.begin(), probabilities.end());
  return answers;
}

TEST(SessionThreads, RefusesNone) {
  const auto refused = Session::Create(Open(TinyMicronet(), "cpu"), {.threads = 0});
  EXPECT_EQ(refused.status().code(), KINGLET_INVALID_ARGUMENT);
}

TEST(SessionThreads, GiveTheBitsOfOne) {
  for (const bool quantised : {false, true}) {
    const auto model = Open(TinyMicronet(ManyWords(quantised)), "cpu");
    const std::vector<uint32_t> ids = {5, 299'999, 5, 60'000};
    const std::vector<double> expected = Answers(*Start(model), ids);
    for (const uint32_t threads : {1u, 2u, 3u, 8u}) {
      ASSERT_EQ(Answers(*Start(model, {.threads = threads}), ids), expected) << threads;
    }
  }
}

TEST(SessionThreads, GiveLanesTheirBits) {
  const auto model = Open(TinyMicronet(ManyWords(true)), "cpu");
  constexpr uint32_t kLanes = 70;
  const std::vector<uint32_t> ids = Tokens(kLanes, 300'000);
  std::vector<uint32_t> all;
  for (uint32_t lane = 0; lane < kLanes; ++lane) all.push_back(lane);
  const auto alone = Start(model, {.lanes = kLanes});
  const auto helped = Start(model, {.lanes = kLanes, .threads = 2});
  for (int step = 0; step < 3; ++step) {
    ASSERT_TRUE(alone->StepLanes(all, ids).ok());
    ASSERT_TRUE(helped->StepLanes(all, ids).ok());
  }
  for (const uint32_t lane : {0u, 31u, 69u}) {
    ASSERT_TRUE(*alone->Save(lane) == *helped->Save(lane));
    ASSERT_EQ(Full(*alone, lane), Full(*helped, lane));
  }
}

TEST(SessionThreads, CancellationLeavesNoTrace) {
  const auto model = Open(TinyMicronet(ManyWords(true)), "cpu");
  const auto session = Start(model, {.threads = 2});
  ASSERT_TRUE(session->StepToken(3).ok());
  const std::vector<double> expected = Full(*session);
  session->Cancel();
  ASSERT_EQ(session->StepToken(4).code(), KINGLET_CANCELLED);
  ASSERT_EQ(Full(*session), expected);
}

TEST(SessionThreads, UseNoProcessorBetweenCalls) {
  const auto model = Open(TinyMicronet(ManyWords(true)), "cpu");
  std::vector<std::unique_ptr<Session>> sessions;
  for (int i = 0; i < 10; ++i) {
    sessions.push_back(Start(model, {.threads = 2}));
    ASSERT_TRUE(sessions.back()->StepToken(3).ok());
    ASSERT_EQ(Full(*sessions.back()).size(), 300'000u);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const std::clock_t before = std::clock();  // of all threads of the process
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_LT(std::clock() - before, CLOCKS_PER_SEC / 50);
}

}  // namespace
}  // namespace kinglet::session_threads_test

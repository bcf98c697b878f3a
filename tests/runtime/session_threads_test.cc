// Sessions whose threads divide the work of a call among them: no answer changes by a bit.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <numeric>
#include <span>
#include <thread>
#include <vector>

#include "runtime/session.h"
#include "tests/runtime/session_fixture.h"
#include "tests/support/processor_time.h"
#include "tests/support/recurrent_builder.h"

namespace kinglet::session_threads_test {
namespace {

// Enough tokens for each query to wake the workers.
TinyOptions ManyTokens(bool quantised) {
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
    for (const Candidate& token : best) {
      answers.push_back(static_cast<double>(token.id));
      answers.push_back(token.log_probability);
    }
    answers.push_back(*session.LogProbability(id / 2));
    answers.push_back(*session.Draw(id, {.temperature = 1.3}));
    const std::vector<double> all = Full(session);
    answers.insert(answers.end(), all.begin(), all.end());
  }
  std::vector<double> probabilities(session.model().vocabulary_size());
  EXPECT_TRUE(session.Probabilities(std::span<double>(probabilities)).ok());
  answers.insert(answers.end(), probabilities.begin(), probabilities.end());
  return answers;
}

TEST(SessionThreads, ZeroThreadsAreRefused) {
  const auto refused = Session::Create(Open(TinyMicronet(), "cpu"), {.threads = 0});
  EXPECT_EQ(refused.status().code(), KINGLET_INVALID_ARGUMENT);
}

TEST(SessionThreads, GiveTheBitsOfOne) {
  for (const bool quantised : {false, true}) {
    const auto model = Open(TinyMicronet(ManyTokens(quantised)), "cpu");
    const std::vector<uint32_t> ids = {5, 299'999, 5, 60'000};
    const std::vector<double> expected = Answers(*Start(model), ids);
    for (const uint32_t threads : {1u, 2u, 3u, 8u}) {
      ASSERT_EQ(Answers(*Start(model, {.threads = threads}), ids), expected) << threads;
    }
  }
}

TEST(SessionThreads, GiveLanesTheirBits) {
  const auto model = Open(TinyMicronet(ManyTokens(true)), "cpu");
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
  const auto model = Open(TinyMicronet(ManyTokens(true)), "cpu");
  const auto session = Start(model, {.threads = 2});
  ASSERT_TRUE(session->StepToken(3).ok());
  const std::vector<double> expected = Full(*session);
  session->Cancel();
  ASSERT_EQ(session->StepToken(4).code(), KINGLET_CANCELLED);
  ASSERT_EQ(Full(*session), expected);
}

// A softmax of 2^32 hashed codes, more than 30 seconds of work in a file of 2 kB.
ModelDraft ManyHashedCodes() {
  constexpr uint32_t kTokens = 1U << 22, kPositions = 1024;
  ModelDraft draft = TinyRecurrent({.cells = {RecurrentCell::kTanh},
                                    .vocabulary_size = 40,
                                    .tails = 0,
                                    .input_coding = TinyCoding{1, {7}},
                                    .head_coding = TinyCoding{1, {7}},
                                    .vocabulary = false});
  for (EncodedTensor& tensor : draft.tensors) {
    auto* const coded = std::get_if<Coded>(&tensor.values);
    if (coded == nullptr) continue;
    tensor.shape[0] = kTokens;
    coded->codes = HashSeed{3};
    coded->scheme.combine = Combine::kSum;
    coded->scheme.positions = kPositions;
  }
  draft.description.vocabulary_size = kTokens;
  for (Block& block : draft.description.blocks) {
    if (auto* embedding = std::get_if<AdaptiveEmbedding>(&block)) embedding->bins[0].size = kTokens;
    if (auto* softmax = std::get_if<AdaptiveSoftmax>(&block)) {
      softmax->head_size = kTokens;
      draft.tensors[*softmax->head_bias] = {"unused", {1}, DenseF32{{0}}};
      softmax->head_bias.reset();
    }
  }
  return draft;
}

TEST(SessionThreads, CancellationStopsInsideANode) {
  using Clock = std::chrono::steady_clock;
  const std::vector<std::byte> bytes = *SerialiseModel(ManyHashedCodes());
  ASSERT_LT(bytes.size(), 4096u);
  for (const char* const backend : {"cpu", "ref64"}) {
    ModelOptions options;
    options.backend = backend;
    const auto model = *Model::FromBytes(bytes, options);
    for (const uint32_t threads : {1U, 2U}) {
      for (const uint32_t lanes : {1U, 3U}) {
        const auto session = Start(model, {.lanes = lanes, .threads = threads});
        std::vector<uint32_t> all(lanes), ids(lanes, 5);
        std::iota(all.begin(), all.end(), 0);
        ASSERT_TRUE(session->StepLanes(all, ids).ok());
        Clock::time_point cancelled;
        std::thread canceller([&] {
          std::this_thread::sleep_for(std::chrono::milliseconds(50));
          cancelled = Clock::now();
          session->Cancel();
        });
        std::vector<double> answers(lanes);
        const Status status = session->LogProbabilityLanes(all, ids, answers);
        const Clock::time_point returned = Clock::now();
        canceller.join();
        EXPECT_EQ(status.code(), KINGLET_CANCELLED);
        EXPECT_LT(returned - cancelled, std::chrono::seconds(3)) << backend;
      }
    }
  }
}

TEST(SessionThreads, UseNoProcessorBetweenCalls) {
  const auto model = Open(TinyMicronet(ManyTokens(true)), "cpu");
  std::vector<std::unique_ptr<Session>> sessions;
  for (int i = 0; i < 10; ++i) {
    sessions.push_back(Start(model, {.threads = 2}));
    ASSERT_TRUE(sessions.back()->StepToken(3).ok());
    ASSERT_EQ(Full(*sessions.back()).size(), 300'000u);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const double before = ProcessorSeconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_LT(ProcessorSeconds() - before, 0.02);
}

}  // namespace
}  // namespace kinglet::session_threads_test

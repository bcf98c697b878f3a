// Many streams in one session: steps, forks, restored states and cancelled calls of one lane leave
// the others alone.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/session.h"
#include "tests/runtime/session_fixture.h"

namespace kinglet::session_lanes_test {
namespace {

TEST(SessionLanes, LanesEqualSingleStreamsHoweverTheyStep) {
  for (const bool quantised : {false, true}) {
    for (const Backend& backend : Backends()) {
      const auto model = Open(TinyMicronet(WholeOptions(quantised)), std::string(backend.name));
      constexpr uint32_t kLanes = 5;
      const auto lanes = Start(model, {.lanes = kLanes});
      std::vector<std::unique_ptr<Session>> singles;
      for (uint32_t i = 0; i < kLanes; ++i) singles.push_back(Start(model));
      TestRandom random(4);
      for (int step = 0; step < 60; ++step) {
        std::vector<uint32_t> order(kLanes), ids;
        std::iota(order.begin(), order.end(), 0);
        for (uint32_t i = kLanes - 1; i > 0; --i) std::swap(order[i], order[random.Below(i + 1)]);
        order.resize(random.Below(kLanes + 1));  // no, some or all lanes, in any order
        for (size_t i = 0; i < order.size(); ++i) ids.push_back(random.Below(40));
        ASSERT_TRUE(lanes->StepLanes(order, ids).ok());
        for (size_t i = 0; i < order.size(); ++i) {
          ASSERT_TRUE(singles[order[i]]->StepToken(ids[i]).ok());
        }
        for (uint32_t lane = 0; lane < kLanes; ++lane) {
          ASSERT_EQ(lanes->position(lane), singles[lane]->position());
          if (lanes->position(lane) == 0) continue;
          ASSERT_EQ(Full(*lanes, lane), Full(*singles[lane]));
          ASSERT_TRUE(*lanes->Save(lane) == *singles[lane]->Save());
        }
      }
    }
  }
}

TEST(SessionLanes, AStepOfLanesHappensCompletelyOrNotAtAll) {
  const auto session = Start(Open(TinyMicronet(WholeOptions(true)), "cpu"), {.lanes = 3});
  ASSERT_TRUE(session->StepLanes(std::vector<uint32_t>{0, 2}, std::vector<uint32_t>{1, 2}).ok());
  const State before[] = {*session->Save(0), *session->Save(1), *session->Save(2)};
  const auto refuses = [&](std::vector<uint32_t> lanes, std::vector<uint32_t> ids,
                           StatusCode code) {
    EXPECT_EQ(session->StepLanes(lanes, ids).code(), code);
    for (uint32_t lane = 0; lane < 3; ++lane) EXPECT_TRUE(*session->Save(lane) == before[lane]);
  };
  refuses({0, 1, 0}, {1, 1, 1}, KINGLET_INVALID_ARGUMENT);
  refuses({0, 3}, {1, 1}, KINGLET_INVALID_ARGUMENT);
  refuses({0, 1}, {1, 40}, KINGLET_ID_OUT_OF_RANGE);
  refuses({0, 1}, {1}, KINGLET_INVALID_ARGUMENT);
  EXPECT_TRUE(session->StepLanes({}, {}).ok());
}

TEST(SessionLanes, ForksDoNotDisturbEachOther) {
  const auto model = Open(TinyMicronet(WholeOptions(true)), "cpu");
  const auto session = Start(model, {.lanes = 3});
  const auto text = Tokens(60, 40, 1), left = Tokens(30, 40, 2), right = Tokens(30, 40, 3);
  for (size_t t = 0; t < 30; ++t) ASSERT_TRUE(session->StepToken(text[t]).ok());
  ASSERT_TRUE(session->Fork(0, 1).ok());
  ASSERT_TRUE(session->Fork(1, 2).ok());
  ASSERT_TRUE(session->Fork(1, 1).ok());
  const auto alone = [&](std::span<const uint32_t> tail) {
    const auto stream = Start(model);
    for (size_t t = 0; t < 30; ++t) EXPECT_TRUE(stream->StepToken(text[t]).ok());
    for (const uint32_t id : tail) EXPECT_TRUE(stream->StepToken(id).ok());
    return Full(*stream);
  };
  for (size_t t = 0; t < 30; ++t) {
    ASSERT_TRUE(session
                    ->StepLanes(std::vector<uint32_t>{0, 1, 2},
                                std::vector<uint32_t>{text[30 + t], left[t], right[t]})
                    .ok());
  }
  EXPECT_EQ(Full(*session, 0), alone(std::span(text).subspan(30)));
  EXPECT_EQ(Full(*session, 1), alone(left));
  EXPECT_EQ(Full(*session, 2), alone(right));
}

TEST(SessionLanes, RewindsToKeptStates) {
  for (const Backend& backend : Backends()) {
    const auto model = Open(TinyMicronet(WholeOptions(true)), std::string(backend.name));
    const auto session = Start(model);
    const auto ids = Tokens(40, 40);
    std::vector<State> kept;
    std::vector<std::vector<double>> answers;
    for (const uint32_t id : ids) {
      ASSERT_TRUE(session->StepToken(id).ok());
      kept.push_back(*session->Save());
      answers.push_back(Full(*session));
    }
    for (size_t t = ids.size(); t-- > 0;) {
      ASSERT_TRUE(session->Restore(kept[t]).ok());
      ASSERT_EQ(session->position(), t + 1);
      ASSERT_EQ(Full(*session), answers[t]) << t;
      if (t + 1 < ids.size()) {  // and continues from there
        ASSERT_TRUE(session->StepToken(ids[t + 1]).ok());
        ASSERT_EQ(Full(*session), answers[t + 1]);
      }
    }
  }
}

TEST(SessionLanes, CancellationInTheMiddleOfAStepLeavesNoTrace) {
  const auto model = Open(TinyMicronet(WholeOptions(true)), "cpu");
  const auto session = Start(model, {.lanes = 2});
  const std::vector<uint32_t> both = {0, 1};
  for (const uint32_t id : Tokens(20, 40)) {
    ASSERT_TRUE(session->StepLanes(both, std::vector<uint32_t>{id, id / 2}).ok());
  }
  const State before = *session->Save(1);
  const std::vector<double> answers = Full(*session, 1);
  const size_t nodes = model->plan().context.end - model->plan().context.begin;
  for (size_t stop = 0; stop + 1 < nodes; ++stop) {  // not after the last node
    size_t done = 0;
    session->set_observer([&](const Node&, std::span<const StreamFrame>) {
      if (done++ == stop) session->Cancel();
    });
    const Status status = session->StepLanes(both, std::vector<uint32_t>{5, 6});
    ASSERT_EQ(status.code(), KINGLET_CANCELLED) << stop;
    ASSERT_TRUE(*session->Save(1) == before) << stop;
    ASSERT_EQ(session->position(1), 20u);
    ASSERT_EQ(Full(*session, 1), answers) << stop;
  }
  session->set_observer({});
  // Cancel while no call runs cancels the next call that computes, and only that call.
  session->Cancel();
  ASSERT_EQ(session->StepToken(5).code(), KINGLET_CANCELLED);
  ASSERT_TRUE(session->StepToken(5).ok());
  session->Cancel();
  ASSERT_EQ(session->TopK(3).status().code(), KINGLET_CANCELLED);
  ASSERT_TRUE(session->TopK(3).ok());
}

}  // namespace
}  // namespace kinglet::session_lanes_test

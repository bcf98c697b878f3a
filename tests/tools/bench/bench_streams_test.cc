#include "tools/bench/bench_streams.h"

#include <gtest/gtest.h>

#include "tests/support/model_builder.h"

namespace kinglet::bench_streams_test {
namespace {

std::shared_ptr<const Model> OpenTiny() {
  TinyOptions options;
  options.cache_capacity = 4;
  return *Model::FromBytes(*SerialiseModel(TinyMicronet(options)), {.backend = "ref"});
}

// Each lane takes the same paths as a session of its own that is fed the same tokens.
TEST(BenchStreams, LanesDoWhatASingleStreamDoes) {
  const auto model = OpenTiny();
  const std::vector<uint32_t> text = {3, 1, 22, 1, 5, 9, 2, 6, 15, 3, 5, 8, 0, 20, 11};
  for (const size_t threads : {1u, 2u, 4u}) {
    constexpr size_t kLanes = 5;
    const LaneIds ids(text, kLanes);
    const auto team = *ThreadTeam::Create(threads);
    auto streams = *BenchStreams::Create(model, kLanes, ids, *team);
    ASSERT_TRUE(streams.Feed(3).ok());
    const std::vector<State> start = *streams.Save();
    ASSERT_EQ(start.size(), kLanes);
    for (const BenchQuery& query : {BenchQuery{BenchMode::kScore}, BenchQuery{BenchMode::kTopK, 2},
                                    BenchQuery{BenchMode::kScore, 1, true}}) {
      ASSERT_TRUE(streams.Restore(start).ok());
      for (uint64_t position = 3; position < 12; ++position) {
        const auto seconds = streams.Step(query);
        ASSERT_TRUE(seconds.ok());
        EXPECT_GT(*seconds, 0);
        ASSERT_EQ(streams.last_steps().size(), kLanes);
        for (size_t lane = 0; lane < kLanes; ++lane) {
          const auto single = *Session::Create(model);
          for (uint64_t i = 0; i <= position; ++i) {
            ASSERT_TRUE(single->StepToken(ids.At(lane, i)).ok());
          }
          if (query.mode == BenchMode::kScore) {
            ASSERT_TRUE(single->LogProbability(ids.At(lane, position + 1)).ok());
          } else {
            ASSERT_TRUE(single->TopK(query.top).ok());
          }
          const uint32_t id = ids.At(lane, position);
          const size_t bin = id < 3 ? 0 : id < 10 ? 1 : 2;  // of 3, 7 and 13 words
          const ClusterSet clusters =
              query.no_skip ? ClusterSet::First(3) : single->clusters_opened();
          EXPECT_EQ(streams.last_steps()[lane].path,
                    (TokenPath{std::min<uint64_t>(position, 6), bin, clusters}));
          EXPECT_EQ(streams.last_steps()[lane].arithmetic.multiplications,
                    single->last_work().arithmetic.multiplications);
        }
      }
    }
  }
}

TEST(BenchStreams, StepsAreTimedOnlyWhileObservedAndOnlyIfTheyRun) {
  const auto model = OpenTiny();
  const Plan& plan = model->plan();
  const LaneIds ids({1}, 2);
  const auto team = *ThreadTeam::Create(2);
  auto streams = *BenchStreams::Create(model, 2, ids, *team);
  const BenchQuery query{BenchMode::kScore};
  ASSERT_TRUE(streams.Step(query).ok());
  for (size_t i = 0; i < plan.nodes.size(); ++i) EXPECT_EQ(streams.NodeSeconds(i), 0);
  EXPECT_EQ(streams.QuerySeconds(), 0);
  streams.Observe(true);
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(streams.Step(query).ok());
  streams.Observe(false);
  double seconds = 0;
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    seconds += streams.NodeSeconds(i);
    // Word 1 is in the head.
    if (RunsOn(plan, {6, 0, {0}}, i)) continue;
    EXPECT_EQ(streams.NodeSeconds(i), 0) << plan.nodes[i].name;
  }
  EXPECT_GT(seconds, 0);
  ASSERT_TRUE(streams.Step(query).ok());
  double after = 0;
  for (size_t i = 0; i < plan.nodes.size(); ++i) after += streams.NodeSeconds(i);
  EXPECT_EQ(after, seconds);
}

TEST(BenchStreams, AnswersAreTheWholeDistributionOnly) {
  const auto model = OpenTiny();
  const LaneIds ids({1}, 4);
  const auto team = *ThreadTeam::Create(3);
  const auto streams = *BenchStreams::Create(model, 4, ids, *team);
  const auto answers = streams.Answers({BenchMode::kFull});
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_EQ(answers[0].size(), 23u * 4);
  EXPECT_TRUE(streams.Answers({BenchMode::kScore}).empty());
  EXPECT_TRUE(streams.Answers({BenchMode::kTopK}).empty());
}

}  // namespace
}  // namespace kinglet::bench_streams_test

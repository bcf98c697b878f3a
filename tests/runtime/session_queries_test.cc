// A query of several lanes: each answer, and the work that its lane reports, is that of a query of
// the lane alone, and a cluster is computed for the lanes that need it and for no other.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/session.h"
#include "tests/runtime/session_fixture.h"

namespace kinglet::session_queries_test {
namespace {

constexpr uint32_t kLanes = 8 * kLanesTogether + 3;  // enough to share memory in any of the models
constexpr uint32_t kTokens = 40;                     // of WholeOptions

using Lanes = std::vector<uint32_t>;

// Steps a random token on every lane of both sessions.
void StepAll(Session& a, Session& b, TestRandom& random) {
  Lanes lanes(kLanes), ids(kLanes);
  std::iota(lanes.begin(), lanes.end(), 0);
  for (uint32_t& id : ids) id = random.Below(kTokens);
  ASSERT_TRUE(a.StepLanes(lanes, ids).ok() && b.StepLanes(lanes, ids).ok());
}

// No, some or all lanes, in any order.
Lanes SomeLanes(TestRandom& random) {
  Lanes lanes(kLanes);
  std::iota(lanes.begin(), lanes.end(), 0);
  for (uint32_t i = kLanes - 1; i > 0; --i) std::swap(lanes[i], lanes[random.Below(i + 1)]);
  lanes.resize(random.Below(kLanes + 1));
  return lanes;
}

void ExpectSameWork(const Session& a, const Session& b) {
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    EXPECT_EQ(a.clusters_opened(lane), b.clusters_opened(lane)) << lane;
    const QueryWork &of_a = a.last_work(lane), &of_b = b.last_work(lane);
    EXPECT_EQ(of_a.clusters, of_b.clusters);
    EXPECT_EQ(of_a.cache, of_b.cache);
    EXPECT_EQ(of_a.arithmetic.multiplications, of_b.arithmetic.multiplications);
    EXPECT_EQ(of_a.arithmetic.additions, of_b.arithmetic.additions);
    EXPECT_EQ(of_a.arithmetic.others, of_b.arithmetic.others);
  }
}

// Makes each query for several lanes in one session and lane by lane in another.
void CompareWithSingles(Session& together, Session& alone, TestRandom& random) {
  for (int token = 0; token < 12; ++token) {
    StepAll(together, alone, random);
    for (int query = 0; query < 6; ++query) {
      const Lanes lanes = SomeLanes(random);
      switch (random.Below(3)) {
        case 0: {
          std::vector<uint32_t> ids(lanes.size());
          for (uint32_t& id : ids) id = random.Below(kTokens);
          std::vector<double> out(lanes.size());
          ASSERT_TRUE(together.LogProbabilityLanes(lanes, ids, out).ok());
          for (size_t i = 0; i < lanes.size(); ++i) {
            ASSERT_EQ(out[i], *alone.LogProbability(ids[i], lanes[i]));
          }
          break;
        }
        case 1: {
          const uint32_t k = random.Below(8) == 0 ? 2 * kTokens : random.Below(6);
          const auto best = together.TopKLanes(lanes, k);
          ASSERT_TRUE(best.ok());
          for (size_t i = 0; i < lanes.size(); ++i) {
            const auto expected = alone.TopK(k, lanes[i]);
            ASSERT_EQ((*best)[i].size(), expected->size());
            for (size_t j = 0; j < expected->size(); ++j) {
              ASSERT_EQ((*best)[i][j].id, (*expected)[j].id);
              ASSERT_EQ((*best)[i][j].log_probability, (*expected)[j].log_probability);
            }
          }
          break;
        }
        default: {
          std::vector<uint64_t> seeds(lanes.size());
          for (uint64_t& seed : seeds) seed = random.Next();
          const double temperature = 0.25 * random.Below(8);
          std::vector<uint32_t> out(lanes.size());
          ASSERT_TRUE(together.DrawLanes(lanes, seeds, {.temperature = temperature}, out).ok());
          for (size_t i = 0; i < lanes.size(); ++i) {
            ASSERT_EQ(out[i], *alone.Draw(seeds[i], {.temperature = temperature}, lanes[i]));
          }
        }
      }
      ExpectSameWork(together, alone);
    }
    Lanes lanes = SomeLanes(random);
    lanes.resize(std::min(lanes.size(), kLanesTogether));
    ASSERT_TRUE(together.ComputeAllLanes(lanes).ok());
    for (const uint32_t lane : lanes) {
      ASSERT_TRUE(alone.ComputeAll(lane).ok());
      ASSERT_EQ(Full(together, lane), Full(alone, lane));
      EXPECT_EQ(together.last_work(lane).clusters, ClusterSet());  // they were computed before
    }
  }
}

TEST(DistributionLanes, AnswersAndWorkAreThoseOfLanesAskedAlone) {
  for (const bool quantised : {false, true}) {
    for (const Backend& backend : Backends()) {
      SCOPED_TRACE(std::string(backend.name) + (quantised ? ", quantised" : ""));
      const auto model = Open(TinyMicronet(WholeOptions(quantised)), std::string(backend.name));
      const auto together = Start(model, {.lanes = kLanes}),
                 alone = Start(model, {.lanes = kLanes});
      TestRandom random(5);
      CompareWithSingles(*together, *alone, random);
    }
  }
}

// Other lanes' answers take the same work as the first time, and are the same.
TEST(DistributionLanes, OfManyLanesThoseThatWereAskedLastAreRemembered) {
  for (const bool quantised : {false, true}) {
    const auto model = Open(TinyMicronet(WholeOptions(quantised)), "cpu");
    ASSERT_EQ(Session::LanesRemembered(*model, kLanes), kLanesTogether);
    EXPECT_EQ(Session::LanesRemembered(*model, kLanesTogether), kLanesTogether);
    EXPECT_EQ(Session::LanesRemembered(*model, 1), 1u);
    const auto session = Start(model, {.lanes = kLanes}), other = Start(model, {.lanes = kLanes});
    TestRandom random(8);
    for (int token = 0; token < 5; ++token) {
      StepAll(*session, *other, random);
      Lanes lanes(kLanes);
      std::iota(lanes.begin(), lanes.end(), 0);
      ASSERT_TRUE(session->ComputeAllLanes(lanes).ok());
      const size_t first = kLanes - kLanesTogether;
      for (size_t i = 0; i < kLanes; ++i) {
        const bool is_known = i >= first;
        EXPECT_EQ(session->clusters_opened(lanes[i]), ClusterSet::First(3)) << i;
        if (is_known) {
          Full(*session, lanes[i]);
          EXPECT_EQ(session->last_work(lanes[i]).clusters, ClusterSet()) << i;
        }
      }
      for (size_t i = 0; i < first; ++i) {
        ASSERT_EQ(Full(*session, lanes[i]), Full(*other, lanes[i]));
        EXPECT_EQ(session->last_work(lanes[i]).clusters, ClusterSet::First(3)) << i;
      }
    }
  }
}

TEST(DistributionLanes, WhoAsksForAllClustersHasThemComputed) {
  const auto model = Open(TinyMicronet(WholeOptions(true)), "cpu");
  const auto lazy = Start(model, {.lanes = 2}), eager = Start(model, {.lanes = 2});
  const Lanes lanes = {1, 0};
  for (uint32_t id = 0; id < 10; ++id) {
    std::vector<double> few(2), all(2);
    for (Session* session : {lazy.get(), eager.get()}) {
      ASSERT_TRUE(session->StepLanes(lanes, Lanes{id, 5}).ok());
    }
    ASSERT_TRUE(lazy->LogProbabilityLanes(lanes, Lanes{1, 2}, few).ok());
    ASSERT_TRUE(eager->LogProbabilityLanes(lanes, Lanes{1, 2}, all, Computing::kAll).ok());
    EXPECT_EQ(few, all);
    EXPECT_EQ(eager->last_work(0).clusters, ClusterSet::First(3));
    EXPECT_EQ(lazy->last_work(0).clusters, ClusterSet::First(1));
    ASSERT_TRUE(eager->StepLanes(lanes, Lanes{3, 5}).ok());
    ASSERT_TRUE(lazy->StepLanes(lanes, Lanes{3, 5}).ok());
    const auto best = eager->TopKLanes(lanes, 3, Computing::kAll), some = lazy->TopKLanes(lanes, 3);
    EXPECT_EQ(eager->clusters_opened(1), ClusterSet::First(3));
    EXPECT_EQ(best->at(0).at(2).log_probability, some->at(0).at(2).log_probability);
  }
}

// Every node of a cluster runs once for all lanes of a group that need the cluster.
TEST(DistributionLanes, AClusterIsComputedOnceForThoseThatNeedIt) {
  const auto model = Open(TinyMicronet(WholeOptions(true)), "cpu");
  const auto session = Start(model, {.lanes = kLanesTogether});
  Lanes lanes(kLanesTogether);
  std::iota(lanes.begin(), lanes.end(), 0);
  ASSERT_TRUE(session->StepLanes(lanes, lanes).ok());
  const auto& clusters = model->plan().clusters;
  ASSERT_EQ(clusters.size(), 3u);
  // Tokens of the head for three lanes, of the first tail for one, of the second for the others.
  std::vector<uint32_t> ids(kLanesTogether, clusters[2].first);
  ids[0] = ids[4] = ids[5] = clusters[0].first;
  ids[3] = clusters[1].first;
  std::map<std::string, std::vector<size_t>> runs;  // frames of each run
  session->set_observer([&](const Node& node, std::span<const StreamFrame> frames) {
    runs[node.name].push_back(frames.size());
  });
  std::vector<double> out(kLanesTogether);
  ASSERT_TRUE(session->LogProbabilityLanes(lanes, ids, out).ok());
  const std::vector<size_t> expected = {kLanesTogether, 1, kLanesTogether - 4};
  for (size_t index = 0; index < clusters.size(); ++index) {
    for (size_t i = clusters[index].nodes.begin; i < clusters[index].nodes.end; ++i) {
      const std::vector<size_t>& of_step = runs[model->plan().nodes[i].name];
      EXPECT_TRUE(std::set<size_t>(of_step.begin(), of_step.end()) ==
                  std::set<size_t>{expected[index]})
          << model->plan().nodes[i].name;
    }
  }
  runs.clear();
  ASSERT_TRUE(session->LogProbabilityLanes(lanes, ids, out).ok());
  EXPECT_TRUE(runs.empty());
}

TEST(DistributionLanes, RefusalsChangeNothing) {
  const auto session = Start(Open(TinyMicronet(WholeOptions(true)), "cpu"), {.lanes = 4});
  ASSERT_TRUE(session->StepLanes(Lanes{0, 1, 2}, Lanes{5, 6, 7}).ok());
  std::vector<double> out(2, 5);
  std::vector<uint32_t> drawn(2, 99);
  const std::vector<uint64_t> seeds(2);
  const auto refuses = [&](const Lanes& lanes, StatusCode code) {
    EXPECT_EQ(session->LogProbabilityLanes(lanes, Lanes{1, 2}, out).code(), code);
    EXPECT_EQ(session->TopKLanes(lanes, 3).status().code(), code);
    EXPECT_EQ(session->DrawLanes(lanes, seeds, {}, drawn).code(), code);
    EXPECT_EQ(session->ComputeAllLanes(lanes).code(), code);
  };
  refuses({1, 1}, KINGLET_INVALID_ARGUMENT);
  refuses({1, 4}, KINGLET_INVALID_ARGUMENT);
  refuses({1, 3}, KINGLET_NO_TOKEN_YET);
  const Lanes both = {0, 1};
  EXPECT_EQ(session->LogProbabilityLanes(both, Lanes{1, kTokens}, out).code(),
            KINGLET_ID_OUT_OF_RANGE);
  EXPECT_EQ(session->LogProbabilityLanes(both, Lanes{1}, out).code(), KINGLET_INVALID_ARGUMENT);
  EXPECT_EQ(session->LogProbabilityLanes(both, Lanes{1, 2}, std::span(out).first(1)).code(),
            KINGLET_INVALID_ARGUMENT);
  EXPECT_EQ(session->DrawLanes(both, std::span(seeds).first(1), {}, drawn).code(),
            KINGLET_INVALID_ARGUMENT);
  EXPECT_EQ(session->DrawLanes(both, seeds, {}, std::span(drawn).first(1)).code(),
            KINGLET_INVALID_ARGUMENT);
  EXPECT_EQ(session->DrawLanes(both, seeds, {.temperature = NAN}, drawn).code(),
            KINGLET_INVALID_ARGUMENT);
  session->Cancel();
  EXPECT_EQ(session->LogProbabilityLanes(both, Lanes{1, 39}, out).code(), KINGLET_CANCELLED);
  EXPECT_EQ(out, std::vector<double>(2, 5));
  EXPECT_EQ(drawn, Lanes(2, 99));
  EXPECT_EQ(session->clusters_opened(0), ClusterSet());
  EXPECT_TRUE(session->LogProbabilityLanes({}, {}, {}).ok());
  EXPECT_TRUE(session->LogProbabilityLanes(both, Lanes{1, 39}, out).ok());
}

}  // namespace
}  // namespace kinglet::session_queries_test

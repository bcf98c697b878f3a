// Sessions of every kind of output layer: compares their log-probabilities with an independent
// evaluation in double precision (reference_network), and queries with the full distribution, bit
// for bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <ostream>
#include <string>
#include <vector>

#include "tests/runtime/reference_network.h"
#include "tests/runtime/session_fixture.h"
#include "tests/support/softmax_builder.h"

namespace kinglet::session_softmax_test {
namespace {

struct Kind {
  const char* name;
  TinySoftmax softmax;
  uint32_t cache_capacity = 0;
  bool quantised = false;  // the decoder's activations
};

void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

ModelDraft Draft(const Kind& kind) {
  return TinyMicronetWith(kind.softmax, {.quantised = kind.quantised,
                                         .bits = kind.softmax.bits,
                                         .vocabulary = false,
                                         .cache_capacity = kind.cache_capacity});
}

// Sizes 1, 2, 3, 1, 2, 3, ...
std::vector<uint32_t> SmallTails(uint32_t count) {
  std::vector<uint32_t> sizes(count);
  for (uint32_t i = 0; i < count; ++i) sizes[i] = 1 + i % 3;
  return sizes;
}

const Kind kKinds[] = {
    {"full", {.head_size = 19, .tails = {}}},
    {"low_rank_full", {.head_size = 19, .tails = {}, .head_columns = 3}},
    {"full_without_biases", {.head_size = 19, .tails = {}, .head_bias = false}, 6},
    {"head_projected", {.head_columns = 3, .tail_columns = 2, .reverse_rows = true}},
    {"head_projected_quantised",
     {.head_columns = 5, .tail_columns = 4, .tail_input = TailInput::kFixedPoint15, .bits = 9},
     6,
     true},
    {"wide_projection", {.head_columns = 20, .tail_columns = 21}, 6},
    {"no_biases", {.head_bias = false, .cluster_bias = false, .tail_bias = false}},
    {"one_class", {.head_size = 0, .tails = {23}}, 6},
    {"classes", {.head_size = 0, .tails = {3, 1, 8, 5}, .tail_columns = 2}, 6},
    {"classes_projected",
     {.head_size = 0, .tails = {3, 1, 8, 5}, .head_columns = 3, .reverse_rows = true}},
    {"seventy_classes", {.head_size = 0, .tails = SmallTails(70), .spread = 6}, 6},
    {"three_hundred_tails",
     {.head_size = 4, .tails = SmallTails(300), .reverse_rows = true, .spread = 9}},
    {"whole", {.tail_columns = 3, .normalisation = Normalisation::kWhole}, 6},
    {"whole_reversed",
     {.head_columns = 3, .reverse_rows = true, .normalisation = Normalisation::kWhole}},
    {"whole_without_head",
     {.head_size = 0, .tails = SmallTails(70), .normalisation = Normalisation::kWhole}},
    {"whole_without_tails", {.head_size = 19, .tails = {}, .normalisation = Normalisation::kWhole}},
    {"whole_quantised",
     {.tail_columns = 3,
      .normalisation = Normalisation::kWhole,
      .tail_input = TailInput::kFixedPoint15,
      .bits = 8},
     6,
     true},
};

class SoftmaxKinds : public testing::TestWithParam<Kind> {};
INSTANTIATE_TEST_SUITE_P(All, SoftmaxKinds, testing::ValuesIn(kKinds),
                         [](const auto& of) { return std::string(of.param.name); });

TEST_P(SoftmaxKinds, EqualsDenseEvaluation) {
  const ModelDraft draft = Draft(GetParam());
  const auto ref64 = Start(Open(draft, "ref64")), ref = Start(Open(draft, "ref"));
  const auto ids = Tokens(15, ref->model().vocabulary_size());
  const auto expected = EvaluateDensely(draft, ids);
  for (size_t t = 0; t < ids.size(); ++t) {
    ASSERT_TRUE(ref64->StepToken(ids[t]).ok() && ref->StepToken(ids[t]).ok());
    const auto precise = Full(*ref64), single = Full(*ref);
    double sum = 0;
    for (size_t w = 0; w < precise.size(); ++w) {
      // The product of two scales is rounded to float (docs/NUMERICS.md, rule 3).
      ASSERT_NEAR(precise[w], expected[t][w], GetParam().quantised ? 1e-6 : 1e-12)
          << "token " << t << " word " << w;
      // Quantised activations may round to the other side of a boundary.
      ASSERT_NEAR(single[w], expected[t][w], GetParam().quantised ? 0.3 : 1e-4);
      sum += std::exp(expected[t][w]);
    }
    if (GetParam().cache_capacity == 0) {
      ASSERT_NEAR(sum, 1, 1e-12);
    }
  }
}

TEST_P(SoftmaxKinds, BackendsGiveTheSameBits) {
  const ModelDraft draft = Draft(GetParam());
  const auto ref = Start(Open(draft, "ref")), cpu = Start(Open(draft, "cpu"));
  for (const uint32_t id : Tokens(15, ref->model().vocabulary_size())) {
    ASSERT_TRUE(ref->StepToken(id).ok() && cpu->StepToken(id).ok());
    ASSERT_EQ(Full(*ref), Full(*cpu));
  }
}

TEST_P(SoftmaxKinds, LazyQueriesEqualTheFullDistribution) {
  const ModelDraft draft = Draft(GetParam());
  for (const Backend& backend : Backends()) {
    const auto model = Open(draft, std::string(backend.name));
    const auto full = Start(model), top = Start(model), single = Start(model);
    const uint32_t size = model->vocabulary_size();
    for (const uint32_t id : Tokens(20, size)) {
      ASSERT_TRUE(full->StepToken(id).ok() && top->StepToken(id).ok());
      const std::vector<double> all = Full(*full);
      EXPECT_EQ(full->clusters_opened().Count(), model->plan().clusters.size());
      std::vector<uint32_t> order(size);
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(),
                       [&](uint32_t a, uint32_t b) { return all[a] > all[b]; });
      const auto best = top->TopK(4);
      ASSERT_TRUE(best.ok());
      for (size_t i = 0; i < best->size(); ++i) {
        ASSERT_EQ((*best)[i].id, order[i]);
        ASSERT_EQ((*best)[i].log_probability, all[order[i]]);
      }
      ASSERT_TRUE(single->StepToken(id).ok());
      for (const uint32_t token : {id * 7 % size, size - 1}) {
        ASSERT_EQ(*single->LogProbability(token), all[token]);
      }
      ASSERT_LE(single->clusters_opened().Count(), 3u);
    }
  }
}

TEST_P(SoftmaxKinds, SamplesEqualTheirDefinition) {
  const auto model = Open(Draft(GetParam()), "ref");
  const auto full = Start(model), lazy = Start(model);
  const auto ids = Tokens(6, model->vocabulary_size());
  for (size_t t = 0; t < ids.size(); ++t) {
    ASSERT_TRUE(full->StepToken(ids[t]).ok() && lazy->StepToken(ids[t]).ok());
    const auto all = Full(*full);
    for (uint64_t seed = 0; seed < 10; ++seed) {
      for (const double temperature : {0.4, 1.0, 2.5}) {
        ASSERT_EQ(*lazy->Draw(seed, {.temperature = temperature}),
                  SampleByBruteForce<float>(all, model->plan().clusters, seed, t, temperature));
      }
    }
  }
}

TEST(SoftmaxOfManyClusters, TopKComputesFewClusters) {
  const auto session =
      Start(Open(Draft({"", {.head_size = 40, .tails = SmallTails(300), .spread = 30}}), "cpu"));
  ASSERT_TRUE(session->StepToken(1).ok());
  ASSERT_TRUE(session->TopK(3).ok());
  EXPECT_LT(session->clusters_opened().Count(), 30u);
  const uint32_t last = session->model().vocabulary_size() - 1;
  ASSERT_TRUE(session->LogProbability(last).ok());
  EXPECT_TRUE(session->clusters_opened().Contains(300));
  EXPECT_FALSE(session->clusters_opened().Contains(301));
}

// As many classes as a file may have, one token each: an ordinary softmax over the cluster rows.
TEST(SoftmaxOfManyClusters, TheMost) {
  const auto most = static_cast<uint32_t>(kMaxBins - 1);
  const auto session =
      Start(Open(Draft({"", {.head_size = 0, .tails = std::vector<uint32_t>(most, 1)}}), "ref64"));
  ASSERT_TRUE(session->StepToken(5).ok());
  double sum = 0;
  for (const double value : Full(*session)) sum += std::exp(value);
  EXPECT_NEAR(sum, 1, 1e-12);
  EXPECT_EQ(session->clusters_opened(), ClusterSet::First(most + 1));
}

}  // namespace
}  // namespace kinglet::session_softmax_test

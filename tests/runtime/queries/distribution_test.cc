// What a query computes and what it leaves alone. That the answers are right is
// tests/runtime/session_test.cc's.
#include "runtime/queries/distribution.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "format/writer.h"
#include "runtime/session.h"
#include "tests/support/model_builder.h"
#include "tests/support/recurrent_builder.h"

namespace kinglet::distribution_test {
namespace {

TinyOptions Options() {
  TinyOptions options;
  options.vocabulary_size = 40;
  options.cache_capacity = 6;
  return options;
}

std::vector<float>& Values(ModelDraft& draft, TensorId id) {
  return std::get<DenseF32>(draft.tensors[id].values).values;
}

// Tails whose cluster has next to no probability.
ModelDraft WithImprobableTails() {
  ModelDraft draft = TinyMicronet(Options());
  const auto* softmax = FindBlock<AdaptiveSoftmax>(draft.description);
  for (float& bias : Values(draft, *softmax->cluster_bias)) bias = -60;
  return draft;
}

std::unique_ptr<Session> Start(const ModelDraft& draft) {
  const auto model = Model::FromBytes(*SerialiseModel(draft), {});
  EXPECT_TRUE(model.ok()) << model.status().message();
  return std::move(*Session::Create(*model));
}

TEST(Distribution, TopKLeavesTailsThatCannotMatterAlone) {
  const auto session = Start(WithImprobableTails());
  ASSERT_TRUE(session->StepToken(0).ok());
  EXPECT_EQ(session->clusters_opened(), ClusterSet());
  ASSERT_EQ(session->TopK(3)->size(), 3u);
  EXPECT_EQ(session->clusters_opened(), ClusterSet{0});
  ASSERT_EQ(session->TopK(40)->size(), 40u);
  EXPECT_EQ(session->clusters_opened(), (ClusterSet{0, 1, 2}));
}

TEST(Distribution, ACachedWordOpensItsTailWhenItCouldMatter) {
  ModelDraft draft = WithImprobableTails();
  const auto* softmax = FindBlock<AdaptiveSoftmax>(draft.description);
  const uint32_t rare = softmax->tails[1].first + 1;
  const auto session = Start(draft);
  for (uint32_t id : {0u, rare, 0u, rare, 0u}) ASSERT_TRUE(session->StepToken(id).ok());
  const auto top = session->TopK(5);
  ASSERT_TRUE(top.ok());
  EXPECT_TRUE(session->clusters_opened().Contains(2));
  EXPECT_FALSE(session->clusters_opened().Contains(1));
  // e^-60 without the cache; with it, lambda times a share of about a half.
  EXPECT_GT(*session->LogProbability(rare), -10);
}

TEST(Distribution, OneWordNeedsTheHeadAndItsOwnTail) {
  const auto session = Start(TinyMicronet(Options()));
  ASSERT_TRUE(session->StepToken(0).ok());
  ASSERT_TRUE(session->LogProbability(0).ok());
  EXPECT_EQ(session->clusters_opened(), ClusterSet{0});
  ASSERT_TRUE(session->LogProbability(39).ok());
  EXPECT_EQ(session->clusters_opened(), (ClusterSet{0, 2}));
  ASSERT_TRUE(session->StepToken(0).ok());
  EXPECT_EQ(session->clusters_opened(), ClusterSet());
}

TEST(Distribution, EqualWordsComeByLowerIdFirst) {
  ModelDraft draft = TinyMicronet(Options());
  const auto* softmax = FindBlock<AdaptiveSoftmax>(draft.description);
  // All rows of the head alike: all its words are equally probable.
  for (float& value : Values(draft, *softmax->head_table)) value = 0.25f;
  for (float& value : Values(draft, *softmax->head_bias)) value = 1.0f;
  for (float& value : Values(draft, *softmax->cluster_bias)) value = -60.0f;
  const auto session = Start(draft);
  ASSERT_TRUE(session->StepToken(5).ok());
  const auto top = session->TopK(softmax->head_size);
  ASSERT_TRUE(top.ok());
  for (uint32_t i = 0; i < softmax->head_size; ++i) EXPECT_EQ((*top)[i].id, i);
}

TEST(Distribution, QueriesInAnyOrderGiveTheSameNumbers) {
  const ModelDraft draft = TinyMicronet(Options());
  const auto a = Start(draft), b = Start(draft);
  std::vector<double> all(40);
  for (uint32_t id : {3u, 30u, 3u, 15u, 3u}) {
    ASSERT_TRUE(a->StepToken(id).ok());
    ASSERT_TRUE(b->StepToken(id).ok());
    const double before = *a->LogProbability(30);
    const auto top_before = *a->TopK(4);
    ASSERT_TRUE(a->LogProbabilities(std::span<double>(all)).ok());
    ASSERT_TRUE(b->LogProbabilities(std::span<double>(all)).ok());
    EXPECT_EQ(before, all[30]);
    EXPECT_EQ(*b->LogProbability(30), before);
    const auto top_after = *b->TopK(4);
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(top_before[i].id, top_after[i].id);
  }
}

// AWD-LSTM's neural cache: nothing of it shows until more pairs were seen than it holds, and then
// it is all there.
TEST(Distribution, ACachePastItsCapacityStartsWhole) {
  constexpr uint32_t kCapacity = 5;
  TinyRecurrentOptions with{.cache_capacity = kCapacity}, without;
  for (const EmptyCache empty : {EmptyCache::kReference, EmptyCache::kNormalised}) {
    const auto model = *Model::FromBytes(*SerialiseModel(TinyRecurrent(with)), {});
    const auto cached = *Session::Create(model, {.empty_cache = empty});
    const auto plain = Start(TinyRecurrent(without));
    std::vector<double> expected(23), found(23);
    for (uint32_t t = 0; t < 12; ++t) {
      const uint32_t id = t % 3 == 0 ? 22 : t % 7;
      ASSERT_TRUE(cached->StepToken(id).ok());
      ASSERT_TRUE(plain->StepToken(id).ok());
      const auto top = *cached->TopK(4);  // lazily, before anything else is computed
      ASSERT_TRUE(cached->LogProbabilities(std::span<double>(found)).ok());
      ASSERT_TRUE(plain->LogProbabilities(std::span<double>(expected)).ok());
      EXPECT_EQ(found == expected, t <= kCapacity) << t;
      double total = 0;
      for (const double value : found) total += std::exp(value);
      EXPECT_NEAR(total, 1, 1e-5) << t;
      for (const Candidate& candidate : top) {
        EXPECT_EQ(candidate.log_probability, found[candidate.id]);
        EXPECT_LT(std::count_if(found.begin(), found.end(),
                                [&](double value) { return value > candidate.log_probability; }),
                  4);
      }
    }
  }
}

}  // namespace
}  // namespace kinglet::distribution_test

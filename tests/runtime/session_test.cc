#include "runtime/session.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "tests/runtime/reference_network.h"
#include "tests/runtime/session_fixture.h"
#include "tests/support/model_builder.h"

namespace kinglet::session_test {
namespace {

struct Shape {
  std::string name;
  TinyOptions options;
};

std::vector<Shape> Shapes() {
  std::vector<Shape> shapes;
  for (int bins : {1, 2, 3}) {
    for (bool quantised : {false, true}) {
      for (uint32_t cache : {0u, 1u, 5u, 64u}) {
        TinyOptions options;
        options.bins = bins;
        options.quantised = quantised;
        options.pruned = bins == 2;
        options.cache_capacity = cache;
        options.vocabulary_size = 40;
        shapes.push_back({"bins" + std::to_string(bins) + (quantised ? "_quantised" : "_float") +
                              "_cache" + std::to_string(cache),
                          options});
      }
    }
  }
  TinyOptions wide;
  wide.width = 48;
  wide.heads = 3;
  wide.key_size = 33;  // sums of 32 and more use the blocked order
  wide.inner = 70;
  wide.window = 40;
  wide.cache_capacity = 50;
  wide.vocabulary_size = 100;
  shapes.push_back({"wide_float", wide});
  wide.quantised = true;
  shapes.push_back({"wide_quantised", wide});
  TinyOptions packed;
  packed.bits = 5;
  shapes.push_back({"packed_uncalibrated", packed});
  TinyOptions sixteen;
  sixteen.quantised = true;
  sixteen.bits = 16;
  sixteen.cache_capacity = 7;
  shapes.push_back({"sixteen_bits", sixteen});
  return shapes;
}

class SessionShapes : public testing::TestWithParam<Shape> {};

TEST_P(SessionShapes, Ref64EqualsADenseEvaluationOfTheNetwork) {
  const ModelDraft draft = TinyMicronet(GetParam().options);
  const std::vector<uint32_t> ids = Tokens(90, GetParam().options.vocabulary_size);
  for (bool normalised : {false, true}) {
    const auto expected = EvaluateDensely(draft, ids, normalised);
    const auto session =
        Start(Open(draft, "ref64"),
              SessionOptions{normalised ? EmptyCache::kNormalised : EmptyCache::kReference});
    for (size_t t = 0; t < ids.size(); ++t) {
      ASSERT_TRUE(session->StepToken(ids[t]).ok());
      const std::vector<double> all = Full(*session);
      for (size_t w = 0; w < all.size(); ++w)
        ASSERT_NEAR(all[w], expected[t][w], 1e-10) << t << " " << w;
    }
  }
}

TEST_P(SessionShapes, FloatBackendsAgreeBitForBit) {
  const ModelDraft draft = TinyMicronet(GetParam().options);
  const auto ref = Start(Open(draft, "ref")), cpu = Start(Open(draft, "cpu"));
  for (uint32_t id : Tokens(120, GetParam().options.vocabulary_size)) {
    ASSERT_TRUE(ref->StepToken(id).ok());
    ASSERT_TRUE(cpu->StepToken(id).ok());
    ASSERT_EQ(Full(*ref), Full(*cpu)) << ref->position();
  }
}

TEST_P(SessionShapes, FloatIsCloseToDouble) {
  const ModelDraft draft = TinyMicronet(GetParam().options);
  const auto ref = Start(Open(draft, "ref")), ref64 = Start(Open(draft, "ref64"));
  double largest = 0;
  for (uint32_t id : Tokens(60, GetParam().options.vocabulary_size)) {
    ASSERT_TRUE(ref->StepToken(id).ok());
    ASSERT_TRUE(ref64->StepToken(id).ok());
    const auto a = Full(*ref), b = Full(*ref64);
    for (size_t w = 0; w < a.size(); ++w) largest = std::max(largest, std::fabs(a[w] - b[w]));
  }
  // Quantised activations may be rounded across a boundary, those of float networks are not
  // rounded.
  EXPECT_LT(largest, GetParam().options.quantised ? 0.2 : 1e-4);
}

TEST_P(SessionShapes, LazyQueriesEqualTheFullDistribution) {
  const ModelDraft draft = TinyMicronet(GetParam().options);
  for (const Backend& backend : Backends()) {
    const auto model = Open(draft, std::string(backend.name));
    const auto full = Start(model);
    const uint32_t size = model->vocabulary_size();
    // One session per k, so that each has computed only what its own query needs.
    const std::vector<uint32_t> ks = {0, 1, 3, 10, size, size + 5};
    std::vector<std::unique_ptr<Session>> lazy;
    for (size_t i = 0; i < ks.size(); ++i) lazy.push_back(Start(model));
    for (uint32_t id : Tokens(70, size)) {
      ASSERT_TRUE(full->StepToken(id).ok());
      const std::vector<double> all = Full(*full);
      std::vector<uint32_t> order(size);
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(),
                       [&](uint32_t a, uint32_t b) { return all[a] > all[b]; });
      for (size_t j = 0; j < ks.size(); ++j) {
        ASSERT_TRUE(lazy[j]->StepToken(id).ok());
        const auto top = lazy[j]->TopK(ks[j]);
        ASSERT_TRUE(top.ok());
        ASSERT_EQ(top->size(), std::min(ks[j], size));
        for (size_t i = 0; i < top->size(); ++i) {
          ASSERT_EQ((*top)[i].id, order[i]) << "k " << ks[j] << " rank " << i;
          ASSERT_EQ((*top)[i].log_probability, all[order[i]]);
        }
      }
    }
    const auto single = Start(model);
    for (uint32_t id : Tokens(30, size)) {
      ASSERT_TRUE(single->StepToken(id).ok());
      const uint32_t token = id * 7 % size;
      const auto one = single->LogProbability(token);
      ASSERT_TRUE(one.ok());
      ASSERT_LE(single->clusters_opened().Count(), 2u);
      ASSERT_EQ(*one, Full(*single)[token]);
    }
  }
}

TEST_P(SessionShapes, ProbabilitiesSumToOneOrLoseLambdaOnce) {
  const auto session = Start(Open(TinyMicronet(GetParam().options), "ref64"));
  const auto* cache = FindBlock<NeuralCache>(session->model().file().description());
  for (uint32_t id : Tokens(20, session->model().vocabulary_size())) {
    ASSERT_TRUE(session->StepToken(id).ok());
    double sum = 0;
    for (double log_probability : Full(*session)) sum += std::exp(log_probability);
    const bool empty = cache != nullptr && session->position() == 1;
    EXPECT_NEAR(sum, empty ? 1 - cache->lambda : 1.0, 1e-12) << session->position();
  }
}

TEST_P(SessionShapes, ResetStartsTheStreamAgain) {
  for (const Backend& backend : Backends()) {
    const auto session = Start(Open(TinyMicronet(GetParam().options), std::string(backend.name)));
    const std::vector<uint32_t> ids = Tokens(25, session->model().vocabulary_size());
    std::vector<std::vector<double>> first;
    for (int round = 0; round < 2; ++round) {
      for (size_t t = 0; t < ids.size(); ++t) {
        ASSERT_TRUE(session->StepToken(ids[t]).ok());
        if (round == 0) {
          first.push_back(Full(*session));
        } else {
          ASSERT_EQ(Full(*session), first[t]) << t;
        }
      }
      ASSERT_TRUE(session->Reset().ok());
      EXPECT_EQ(session->position(), 0u);
    }
  }
}

TEST(Session, RefusesWhatMakesNoSenseAndStaysAsItWas) {
  TinyOptions options;
  options.cache_capacity = 4;
  const auto session = Start(Open(TinyMicronet(options), "ref"));
  std::vector<float> all(options.vocabulary_size);
  EXPECT_EQ(session->LogProbability(0).status().code(), KINGLET_NO_TOKEN_YET);
  EXPECT_EQ(session->TopK(1).status().code(), KINGLET_NO_TOKEN_YET);
  EXPECT_EQ(session->LogProbabilities(std::span<float>(all)).code(), KINGLET_NO_TOKEN_YET);
  EXPECT_EQ(session->StepToken(options.vocabulary_size).code(), KINGLET_ID_OUT_OF_RANGE);
  EXPECT_EQ(session->StepToken(UINT32_MAX).code(), KINGLET_ID_OUT_OF_RANGE);
  EXPECT_EQ(session->position(), 0u);
  ASSERT_TRUE(session->StepToken(3).ok());
  const std::vector<double> before = Full(*session);
  EXPECT_EQ(session->StepToken(options.vocabulary_size).code(), KINGLET_ID_OUT_OF_RANGE);
  EXPECT_EQ(session->LogProbability(options.vocabulary_size).status().code(),
            KINGLET_ID_OUT_OF_RANGE);
  EXPECT_EQ(session->LogProbabilities(std::span<float>(all).first(5)).code(),
            KINGLET_INVALID_ARGUMENT);
  std::vector<double> two(2);
  const std::vector<uint32_t> ids = {3, options.vocabulary_size};
  EXPECT_EQ(session->LogProbabilitiesOf(ids, two).code(), KINGLET_ID_OUT_OF_RANGE);
  EXPECT_EQ(session->LogProbabilitiesOf(ids, std::span<double>(two).first(1)).code(),
            KINGLET_INVALID_ARGUMENT);
  for (const double temperature : {std::nan(""), -1.0, -HUGE_VAL, HUGE_VAL}) {
    EXPECT_EQ(session->Draw(1, {.temperature = temperature}).status().code(),
              KINGLET_INVALID_ARGUMENT);
  }
  EXPECT_EQ(session->StepToken(3, 1).code(), KINGLET_INVALID_ARGUMENT);
  EXPECT_EQ(session->TopK(1, 1).status().code(), KINGLET_INVALID_ARGUMENT);
  EXPECT_EQ(session->Fork(0, 1).code(), KINGLET_INVALID_ARGUMENT);
  EXPECT_EQ(session->Fork(1, 0).code(), KINGLET_INVALID_ARGUMENT);
  EXPECT_EQ(session->Save(7).status().code(), KINGLET_INVALID_ARGUMENT);
  EXPECT_EQ(session->Reset(UINT32_MAX).code(), KINGLET_INVALID_ARGUMENT);
  EXPECT_EQ(session->position(), 1u);
  EXPECT_EQ(Full(*session), before);
}

TEST(Session, SessionsOfOneModelDoNotDisturbEachOther) {
  TinyOptions options;
  options.cache_capacity = 9;
  options.quantised = true;
  const auto model = Open(TinyMicronet(options), "cpu");
  const std::vector<uint32_t> a = Tokens(40, options.vocabulary_size, 1),
                              b = Tokens(40, options.vocabulary_size, 2);
  const auto alone = Start(model), left = Start(model), right = Start(model);
  for (size_t t = 0; t < a.size(); ++t) {
    ASSERT_TRUE(left->StepToken(a[t]).ok());
    ASSERT_TRUE(right->StepToken(b[t]).ok());
    ASSERT_TRUE(alone->StepToken(a[t]).ok());
    ASSERT_EQ(Full(*alone), Full(*left));
  }
  EXPECT_NE(Full(*left), Full(*right));
}

TEST(Session, OutlivesTheCallersModelHandle) {
  auto model = Open(TinyMicronet(), "ref");
  const auto session = Start(model);
  model.reset();
  EXPECT_TRUE(session->StepToken(1).ok());
}

TEST(Session, TheObserverSeesEveryContextNodeOnce) {
  const auto session = Start(Open(TinyMicronet(), "ref"));
  std::vector<std::string> names;
  session->set_observer(
      [&](const Node& node, std::span<const StreamFrame>) { names.push_back(node.name); });
  ASSERT_TRUE(session->StepToken(1).ok());
  const Plan& plan = session->model().plan();
  ASSERT_EQ(names.size(), plan.context.end - plan.context.begin);
  for (size_t i = 0; i < names.size(); ++i) EXPECT_EQ(names[i], plan.nodes[i].name);
  session->set_observer({});
  ASSERT_TRUE(session->StepToken(1).ok());
  EXPECT_EQ(names.size(), plan.context.end - plan.context.begin);
}

TEST(Session, ObserversSurroundTheNodesOfTokensAndOfQueries) {
  TinyOptions options;
  options.cache_capacity = 4;
  const auto session = Start(Open(TinyMicronet(options), "ref"));
  const Plan& plan = session->model().plan();
  const Node* running = nullptr;
  std::vector<int> runs(plan.nodes.size());
  session->set_observer(
      [&](const Node& node, std::span<const StreamFrame>) {
        EXPECT_EQ(running, &node);
        running = nullptr;
        ++runs[static_cast<size_t>(&node - plan.nodes.data())];
      },
      [&](const Node& node, std::span<const StreamFrame>) {
        EXPECT_EQ(running, nullptr);
        running = &node;
      });
  ASSERT_TRUE(session->StepToken(1).ok());
  ASSERT_TRUE(session->LogProbability(0).ok());
  std::vector<int> expected(plan.nodes.size());
  const auto expect = [&](NodeRange range) {
    for (size_t i = range.begin; i < range.end; ++i) ++expected[i];
  };
  expect(plan.context);
  expect(plan.clusters[0].nodes);
  expect(plan.cache->nodes);
  EXPECT_EQ(runs, expected);
  // Results of earlier queries are not computed again.
  ASSERT_TRUE(session->ComputeAll().ok());
  for (size_t i = 1; i < plan.clusters.size(); ++i) expect(plan.clusters[i].nodes);
  EXPECT_EQ(runs, expected);
  Full(*session);
  EXPECT_EQ(runs, expected);
}

TEST(Session, ComputingEverythingFirstChangesNoAnswer) {
  TinyOptions options;
  options.cache_capacity = 4;
  const auto model = Open(TinyMicronet(options), "ref");
  const auto eager = Start(model), lazy = Start(model);
  EXPECT_EQ(eager->ComputeAll().code(), KINGLET_NO_TOKEN_YET);
  EXPECT_EQ(eager->ComputeAll(1).code(), KINGLET_INVALID_ARGUMENT);
  for (const uint32_t id : Tokens(20, model->vocabulary_size())) {
    ASSERT_TRUE(eager->StepToken(id).ok() && lazy->StepToken(id).ok());
    ASSERT_TRUE(eager->ComputeAll().ok());
    EXPECT_EQ(eager->clusters_opened(), (ClusterSet{0, 1, 2}));
    const auto a = *eager->TopK(5), b = *lazy->TopK(5);
    for (size_t i = 0; i < 5; ++i) {
      EXPECT_EQ(a[i].id, b[i].id);
      EXPECT_EQ(a[i].log_probability, b[i].log_probability);
    }
    EXPECT_EQ(*eager->LogProbability(22), *lazy->LogProbability(22));
  }
}

TEST(Session, AnOverflowingModelIsAnErrorNotANumber) {
  TinyOptions options;
  options.vocabulary_size = 30;
  ModelDraft draft = TinyMicronet(options);
  // Finite weights whose products are not.
  for (EncodedTensor& tensor : draft.tensors) {
    if (auto* dense = std::get_if<DenseF32>(&tensor.values)) {
      for (float& value : dense->values) value = value < 0 ? -3e38f : 3e38f;
    }
  }
  for (const char* backend : {"ref", "cpu"}) {
    const auto session = Start(Open(draft, backend));
    ASSERT_TRUE(session->StepToken(1).ok());
    EXPECT_EQ(session->LogProbability(2).status().code(), KINGLET_NOT_FINITE) << backend;
    EXPECT_EQ(session->TopK(2).status().code(), KINGLET_NOT_FINITE);
    std::vector<float> all(options.vocabulary_size);
    EXPECT_EQ(session->LogProbabilities(std::span<float>(all)).code(), KINGLET_NOT_FINITE);
  }
}

TEST_P(SessionShapes, GivenTokensAndProbabilitiesAreTheFullDistributions) {
  for (const Backend& backend : Backends()) {
    const auto model = Open(TinyMicronet(GetParam().options), std::string(backend.name));
    const auto full = Start(model), given = Start(model), exponentials = Start(model);
    const uint32_t size = model->vocabulary_size();
    TestRandom random(9);
    for (const uint32_t id : Tokens(30, size)) {
      ASSERT_TRUE(full->StepToken(id).ok());
      ASSERT_TRUE(given->StepToken(id).ok());
      ASSERT_TRUE(exponentials->StepToken(id).ok());
      const std::vector<double> all = Full(*full);
      std::vector<uint32_t> ids(random.Below(6));
      for (uint32_t& token : ids) token = random.Below(size);
      if (ids.size() > 1) ids.back() = ids.front();  // an id twice
      std::vector<double> some(ids.size());
      ASSERT_TRUE(given->LogProbabilitiesOf(ids, some).ok());
      for (size_t i = 0; i < ids.size(); ++i) ASSERT_EQ(some[i], all[ids[i]]);

      std::vector<double> probabilities(size);
      ASSERT_TRUE(exponentials->Probabilities(std::span<double>(probabilities)).ok());
      const double tolerance = backend.real_bytes == sizeof(double) ? 1e-15 : 3e-7;
      for (uint32_t w = 0; w < size; ++w) {
        ASSERT_NEAR(probabilities[w], std::exp(all[w]), tolerance * std::exp(all[w]) + 1e-44);
      }
    }
  }
}

TEST_P(SessionShapes, SamplesAreTheDefinitionsWhateverWasOpened) {
  for (const Backend& backend : Backends()) {
    const auto model = Open(TinyMicronet(GetParam().options), std::string(backend.name));
    const auto full = Start(model), lazy = Start(model);
    for (const uint32_t id : Tokens(40, model->vocabulary_size())) {
      ASSERT_TRUE(full->StepToken(id).ok());
      const std::vector<double> all = Full(*full);
      for (const double temperature : {1e-3, 0.3, 1.0, 2.5, 1e6}) {
        // Restored from a state, so that no cluster is computed yet.
        ASSERT_TRUE(lazy->Restore(*full->Save()).ok());
        const uint64_t position = full->position() - 1;
        const uint64_t seed = 77 + position;
        const auto sample = lazy->Draw(seed, {.temperature = temperature});
        ASSERT_TRUE(sample.ok());
        const auto& clusters = model->plan().clusters;
        const uint32_t expected =
            backend.real_bytes == sizeof(double)
                ? SampleByBruteForce<double>(all, clusters, seed, position, temperature)
                : SampleByBruteForce<float>(all, clusters, seed, position, temperature);
        ASSERT_EQ(*sample, expected) << backend.name << " " << temperature;
        ASSERT_EQ(*full->Draw(seed, {.temperature = temperature}), expected);
      }
      // A past bug: with an empty cache, at the first token, the bounds of tails were too high.
      for (uint64_t seed = 0; seed < 40; ++seed) {
        ASSERT_TRUE(lazy->Restore(*full->Save()).ok());
        ASSERT_EQ(*lazy->Draw(seed, {.temperature = 1}), *full->Draw(seed, {.temperature = 1}))
            << seed;
      }
      for (const double temperature : {6e-309, 1e-308, 1e-307}) {  // a past bug: an endless loop
        ASSERT_TRUE(lazy->Restore(*full->Save()).ok());
        ASSERT_EQ(*lazy->Draw(1, {.temperature = temperature}), (*lazy->TopK(1))[0].id);
      }
      ASSERT_EQ(*lazy->Draw(1, {.temperature = 0}), (*lazy->TopK(1))[0].id);
      ASSERT_EQ(*lazy->Draw(1, {.temperature = 1e-320}), (*lazy->TopK(1))[0].id);
      ASSERT_TRUE(lazy->Draw(1, {.temperature = 1e308}).ok());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, SessionShapes, testing::ValuesIn(Shapes()),
                         [](const auto& instance) { return instance.param.name; });

// The first token of a stream, with an empty cache and many seeds: sampling before and after the
// tails are computed.
TEST(Session, FirstSamplesAreTheSameWhateverWasOpened) {
  for (const EmptyCache empty : {EmptyCache::kReference, EmptyCache::kNormalised}) {
    const auto session =
        Start(Open(TinyMicronet(WholeOptions(true)), "cpu"), {.empty_cache = empty, .lanes = 2});
    ASSERT_TRUE(session->StepLanes(std::vector<uint32_t>{0, 1}, std::vector<uint32_t>{3, 3}).ok());
    const State state = *session->Save(0);
    ASSERT_TRUE(session->ComputeAll(1).ok());
    for (uint64_t seed = 0; seed < 3000; ++seed) {
      for (const double temperature : {0.7, 1.0, 1.5}) {
        ASSERT_TRUE(session->Restore(state, 0).ok());
        ASSERT_EQ(*session->Draw(seed, {.temperature = temperature}, 0),
                  *session->Draw(seed, {.temperature = temperature}, 1))
            << seed;
      }
    }
  }
}

TEST(Session, SamplesFollowTheDistribution) {
  const auto session = Start(Open(TinyMicronet(WholeOptions(false)), "cpu"));
  for (const uint32_t id : {3u, 30u, 3u, 15u}) ASSERT_TRUE(session->StepToken(id).ok());
  for (const double temperature : {0.7, 1.0, 1.6}) {
    std::vector<double> expected;
    double sum = 0;
    for (const double log_probability : Full(*session)) {
      expected.push_back(std::exp(log_probability / temperature));
      sum += expected.back();
    }
    constexpr int kDraws = 20000;
    std::vector<int> drawn(expected.size());
    for (uint64_t seed = 0; seed < kDraws; ++seed)
      ++drawn[*session->Draw(seed, {.temperature = temperature})];
    double chi_square = 0;
    for (size_t w = 0; w < expected.size(); ++w) {
      const double mean = kDraws * expected[w] / sum;
      chi_square += (drawn[w] - mean) * (drawn[w] - mean) / mean;
    }
    EXPECT_LT(chi_square, 85) << temperature;  // 39 degrees of freedom: once in 30,000
  }
}

TEST(Session, WorkIsWhatTheLastQueryAdded) {
  const auto session = Start(Open(TinyMicronet(WholeOptions(false)), "ref"));
  for (const uint32_t id : {3u, 30u, 3u}) ASSERT_TRUE(session->StepToken(id).ok());
  EXPECT_EQ(session->last_work().clusters, ClusterSet());
  ASSERT_TRUE(session->LogProbability(39).ok());  // in the last tail
  EXPECT_EQ(session->last_work().clusters, (ClusterSet{0, 2}));
  EXPECT_TRUE(session->last_work().cache);
  const double first = session->last_work().arithmetic.Total();
  EXPECT_GT(first, 0);
  ASSERT_TRUE(session->LogProbability(39).ok());
  EXPECT_EQ(session->last_work().clusters, ClusterSet());
  EXPECT_FALSE(session->last_work().cache);
  EXPECT_LT(session->last_work().arithmetic.Total(), first);  // the cache's pairs are added up
  Full(*session);
  EXPECT_EQ(session->last_work().clusters, ClusterSet{1});
  ASSERT_TRUE(session->TopK(0).ok());
  EXPECT_EQ(session->last_work().arithmetic.Total(), 0);
}

}  // namespace
}  // namespace kinglet::session_test

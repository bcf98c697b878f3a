#include "runtime/prefix_tree.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "tests/support/model_builder.h"
#include "tests/support/recurrent_builder.h"
#include "tests/support/transformer_builder.h"
#include "tests/support/translation_builder.h"

namespace kinglet::prefix_tree_test {
namespace {

using Ids = std::vector<uint32_t>;

std::shared_ptr<const Model> ModelOf(const ModelDraft& draft, const char* backend = "cpu") {
  ModelOptions options;
  options.backend = backend;
  return *Model::FromFile(*ModelFile::FromBytes(*SerialiseModel(draft)), options);
}

// Sequences of which many begin alike.
std::vector<Ids> RandomSequences(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](size_t limit) { return static_cast<uint32_t>(random() % limit); };
  std::vector<Ids> sequences;
  for (size_t i = 0; i < count; ++i) {
    Ids sequence = {1};
    if (!sequences.empty()) {
      const Ids& other = sequences[below(sequences.size())];
      sequence.assign(other.begin(),
                      other.begin() + static_cast<std::ptrdiff_t>(1 + below(other.size())));
    }
    for (uint32_t more = below(6); more > 0; --more) sequence.push_back(below(5));
    sequences.push_back(std::move(sequence));
  }
  return sequences;
}

std::vector<double> Alone(const std::shared_ptr<const Model>& model, const Ids& sequence,
                          const SessionOptions& options) {
  const auto session = *Session::Create(model, options);
  std::vector<double> values = {0};
  for (size_t t = 0; t + 1 < sequence.size(); ++t) {
    EXPECT_TRUE(session->StepToken(sequence[t]).ok());
    values.push_back(*session->LogProbability(sequence[t + 1]));
  }
  return values;
}

void ExpectAsAlone(const std::shared_ptr<const Model>& model, EmptyCache empty_cache) {
  const std::vector<Ids> sequences = RandomSequences(40, 7);
  PrefixTreeBuilder builder;
  std::vector<Ids> paths;
  for (size_t i = 0; i < sequences.size(); ++i) {
    if (i % 16 == 0) builder.BeginRoot();
    paths.push_back(builder.Add(sequences[i]));
  }
  const PrefixTree& tree = builder.tree();
  std::set<uint32_t> inner(tree.parents.begin(), tree.parents.end());
  inner.erase(kNoParent);
  for (const uint32_t lanes : {1u, 2u, 5u, 40u}) {
    for (const uint32_t threads : {1u, 2u}) {
      auto session = *Session::Create(model, {empty_cache, lanes, threads});
      ASSERT_TRUE(session->StepToken(3).ok());  // the lane's old stream does not matter
      std::vector<double> values(tree.size(), -1);
      const Result<uint64_t> stepped = ScoreTree(tree.parents, tree.ids, *session, values);
      ASSERT_TRUE(stepped.ok()) << stepped.status().message();
      EXPECT_EQ(*stepped, inner.size());
      for (uint32_t lane = 0; lane < lanes; ++lane) EXPECT_EQ(session->position(lane), 0u);
      for (size_t i = 0; i < sequences.size(); ++i) {
        const std::vector<double> alone = Alone(model, sequences[i], {empty_cache, 1, 1});
        for (size_t t = 0; t < alone.size(); ++t) {
          ASSERT_EQ(values[paths[i][t]], alone[t]) << lanes << " lanes, " << i << ", " << t;
        }
      }
    }
  }
}

TEST(ScoreTree, EverySequenceAsIfScoredAlone) {
  ExpectAsAlone(ModelOf(TinyTransformer()), EmptyCache::kReference);
  ExpectAsAlone(ModelOf(TinyTransformer(), "ref64"), EmptyCache::kReference);
  TinyOptions options;
  options.cache_capacity = 4;
  ExpectAsAlone(ModelOf(TinyMicronet(options)), EmptyCache::kReference);
  ExpectAsAlone(ModelOf(TinyMicronet(options)), EmptyCache::kNormalised);
  ExpectAsAlone(ModelOf(TinyRecurrent({.cache_capacity = 4})), EmptyCache::kNormalised);
}

TEST(ScoreTree, SmallTrees) {
  auto session = *Session::Create(ModelOf(TinyTransformer()), {.lanes = 3});
  EXPECT_EQ(*ScoreTree({}, {}, *session, {}), 0u);
  std::vector<double> values(3, -1);
  EXPECT_EQ(*ScoreTree(Ids{kNoParent, kNoParent, kNoParent}, Ids{1, 2, 3}, *session, values), 0u);
  EXPECT_EQ(values, (std::vector<double>{0, 0, 0}));
  // A token twice after one node.
  EXPECT_EQ(*ScoreTree(Ids{kNoParent, 0, 0}, Ids{1, 2, 2}, *session, values), 1u);
  EXPECT_EQ(values[1], values[2]);
  EXPECT_LT(values[1], 0);
}

TEST(ScoreTree, Refusals) {
  auto session = *Session::Create(ModelOf(TinyTransformer()), {.lanes = 2});
  const auto refused = [&](const Ids& parents, const Ids& ids, size_t values, kinglet_status code,
                           const std::string& message) {
    std::vector<double> out(values);
    const Result<uint64_t> stepped = ScoreTree(parents, ids, *session, out);
    EXPECT_EQ(stepped.status().code(), code);
    EXPECT_EQ(stepped.status().message(), message);
  };
  refused({kNoParent}, {1, 2}, 2, KINGLET_INVALID_ARGUMENT,
          "tree: nodes: expected 2 parents and values, found 1 and 2");
  refused({kNoParent, 0}, {1, 2}, 1, KINGLET_INVALID_ARGUMENT,
          "tree: nodes: expected 2 parents and values, found 2 and 1");
  refused({kNoParent, 1}, {1, 2}, 2, KINGLET_INVALID_ARGUMENT,
          "tree: node 1: expected a parent before it, found 1");
  refused({kNoParent, 0}, {1, 17}, 2, KINGLET_ID_OUT_OF_RANGE,
          "tree: node 1: expected a number below 17, found 17");
  // A model with an encoder has no source in a lane that was reset.
  session = *Session::Create(ModelOf(TinyTranslation()));
  std::vector<double> values(2);
  EXPECT_EQ(ScoreTree(Ids{kNoParent, 0}, Ids{1, 2}, *session, values).status().code(),
            KINGLET_NO_SOURCE_YET);
  // A call that is cancelled leaves fresh lanes.
  session = *Session::Create(ModelOf(TinyTransformer()));
  session->Cancel();
  EXPECT_EQ(ScoreTree(Ids{kNoParent, 0}, Ids{1, 2}, *session, values).status().code(),
            KINGLET_CANCELLED);
  EXPECT_EQ(session->position(), 0u);
  EXPECT_TRUE(ScoreTree(Ids{kNoParent, 0}, Ids{1, 2}, *session, values).ok());
}

TEST(PrefixTreeBuilder, SharesBeginningsOfARoot) {
  PrefixTreeBuilder builder;
  EXPECT_EQ(builder.Add(Ids{1, 2, 3}), (Ids{0, 1, 2}));
  EXPECT_EQ(builder.Add(Ids{1, 2}), (Ids{0, 1}));
  EXPECT_EQ(builder.Add(Ids{1, 2, 4}), (Ids{0, 1, 3}));
  EXPECT_EQ(builder.Add(Ids{2, 2}), (Ids{4, 5}));
  builder.BeginRoot();
  EXPECT_EQ(builder.Add(Ids{1}), (Ids{6}));
  EXPECT_EQ(builder.Add(Ids{}), (Ids{}));
  EXPECT_EQ(builder.tree().parents, (Ids{kNoParent, 0, 1, 1, kNoParent, 4, kNoParent}));
  EXPECT_EQ(builder.tree().ids, (Ids{1, 2, 3, 4, 2, 2, 1}));
}

}  // namespace
}  // namespace kinglet::prefix_tree_test

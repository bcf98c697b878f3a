// The nodes that run again after a change, and what is kept for them.
#include "runtime/partial_context.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "runtime/session.h"
#include "tests/runtime/session_fixture.h"

namespace kinglet::partial_context_test {
namespace {

WeightId WeightNamed(const Model& model, const std::string& name) {
  for (WeightId id = 0; id < model.plan().weights.size(); ++id) {
    if (model.plan().weights[id].name == name) return id;
  }
  ADD_FAILURE() << name;
  return 0;
}

PartialContext PartialContextOf(const Model& model, const std::string& name) {
  const std::vector<WeightId> changed = {WeightNamed(model, name)};
  return MakePartialContext(model.plan(), model.layout(), model.backend().real_bytes, changed);
}

// Which context nodes read the weight is known from their names.
TEST(PartialContext, BeginsWithTheFirstNodeThatReadsTheWeight) {
  const auto model = Open(TinyMicronet({.layers = 3}), "cpu");
  const PartialContext partial = PartialContextOf(*model, "layers.1.out.weight");
  ASSERT_FALSE(partial.runs.empty());
  EXPECT_EQ(model->plan().nodes[partial.runs.back().begin].name, "layers.1.out");
  EXPECT_EQ(partial.runs.back().end, model->plan().context.end);
  EXPECT_GT(partial.kept_bytes, 0u);
  EXPECT_LT(partial.kept_bytes, 1000u);
}

// No node of the context reads the weight, but the cache and the hidden state are written again.
TEST(PartialContext, OfAWeightOfTheSoftmaxRunsWhatWritesStates) {
  const auto model = Open(TinyMicronet({.cache_capacity = 4, .layers = 3}), "cpu");
  const PartialContext partial = MakePartialContext(model->plan(), model->layout(), 4, {});
  size_t nodes = 0;
  for (const PartialContext::Run& run : partial.runs) nodes += run.end - run.begin;
  EXPECT_GT(nodes, 0u);
  EXPECT_LE(nodes, 4u);
  EXPECT_EQ(model->plan().nodes[partial.runs.front().begin].name, "cache.append");
}

// A session that replays what another one computed gives the same answers, although its scratch
// contains nothing of the nodes that do not run.
TEST(PartialContext, ReplayedTokensAnswerAsComputedOnes) {
  for (const char* const backend : {"cpu", "ref", "ref64"}) {
    for (const bool quantised : {false, true}) {
      const auto model =
          Open(TinyMicronet({.quantised = quantised, .cache_capacity = 4, .layers = 2}), backend);
      const auto computed = Start(model), replayed = Start(model);
      for (WeightId id = 0; id < model->plan().weights.size(); ++id) {
        const std::vector<WeightId> changed = {id};
        const PartialContext partial = MakePartialContext(model->plan(), model->layout(),
                                                          model->backend().real_bytes, changed);
        std::vector<std::byte> kept(partial.kept_bytes);
        const auto index = [&](const Node& node) {
          return static_cast<size_t>(&node - model->plan().nodes.data());
        };
        computed->set_observer(
            [&](const Node& node, std::span<const StreamFrame> frames) {
              if (index(node) + 1 == model->plan().context.end) {
                CopyKept(partial, partial.runs.size(), model->layout(), frames.front(),
                         kept.data());
              }
            },
            [&](const Node& node, std::span<const StreamFrame> frames) {
              for (size_t run = 0; run < partial.runs.size(); ++run) {
                if (partial.runs[run].begin == index(node)) {
                  CopyKept(partial, run, model->layout(), frames.front(), kept.data());
                }
              }
            });
        ASSERT_TRUE(computed->Reset().ok());
        ASSERT_TRUE(replayed->Reset().ok());
        for (const uint32_t token : Tokens(12, model->vocabulary_size(), id + 1)) {
          ASSERT_TRUE(computed->StepToken(token).ok());
          ASSERT_TRUE(replayed->StepTokenAfter(token, partial, kept).ok());
          ASSERT_EQ(Full(*replayed), Full(*computed)) << model->plan().weights[id].name;
        }
      }
    }
  }
}

TEST(PartialContext, PlansWithOtherNodesAreToldApart) {
  const auto model = Open(TinyMicronet({.layers = 2}), "cpu");
  EXPECT_TRUE(HaveTheSameNodes(model->plan(), Open(TinyMicronet({.layers = 2}), "cpu")->plan()));
  EXPECT_FALSE(HaveTheSameNodes(model->plan(), Open(TinyMicronet({.layers = 3}), "cpu")->plan()));
  EXPECT_FALSE(HaveTheSameNodes(
      model->plan(), Open(TinyMicronet({.quantised = true, .layers = 2}), "cpu")->plan()));
}

}  // namespace
}  // namespace kinglet::partial_context_test

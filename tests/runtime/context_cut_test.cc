// The steps that run again after a change, and what is kept for them.
#include "runtime/context_cut.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "runtime/session.h"
#include "tests/runtime/session_fixture.h"

namespace kinglet::context_cut_test {
namespace {

WeightId WeightNamed(const Model& model, const std::string& name) {
  for (WeightId id = 0; id < model.plan().weights.size(); ++id) {
    if (model.plan().weights[id].name == name) return id;
  }
  ADD_FAILURE() << name;
  return 0;
}

ContextCut CutOf(const Model& model, const std::string& name) {
  const std::vector<WeightId> changed = {WeightNamed(model, name)};
  return CutContext(model.plan(), model.layout(), model.backend().real_bytes, changed);
}

// Which context steps read the weight is known from their names.
TEST(ContextCut, BeginsWithTheFirstStepThatReadsTheWeight) {
  const auto model = Open(TinyMicronet({.layers = 3}), "cpu");
  const ContextCut cut = CutOf(*model, "layers.1.out.weight");
  ASSERT_FALSE(cut.runs.empty());
  EXPECT_EQ(model->plan().steps[cut.runs.back().begin].name, "layers.1.out");
  EXPECT_EQ(cut.runs.back().end, model->plan().context.end);
  EXPECT_GT(cut.kept_bytes, 0u);
  EXPECT_LT(cut.kept_bytes, 1000u);
}

// Nothing of the context reads it; the cache and the hidden state are made anew all the same.
TEST(ContextCut, OfAWeightOfTheSoftmaxRunsWhatWritesStates) {
  const auto model = Open(TinyMicronet({.cache_capacity = 4, .layers = 3}), "cpu");
  const ContextCut none = CutContext(model->plan(), model->layout(), 4, {});
  size_t steps = 0;
  for (const ContextCut::Run& run : none.runs) steps += run.end - run.begin;
  EXPECT_GT(steps, 0u);
  EXPECT_LE(steps, 4u);
  EXPECT_EQ(model->plan().steps[none.runs.front().begin].name, "cache.append");
}

// A session that only replays answers as one that computes; its scratch holds nothing of use.
TEST(ContextCut, ReplayedStepsAnswerAsComputedOnes) {
  for (const char* const backend : {"cpu", "ref", "ref64"}) {
    for (const bool quantised : {false, true}) {
      const auto model =
          Open(TinyMicronet({.quantised = quantised, .cache_capacity = 4, .layers = 2}), backend);
      const auto computed = Start(model), replayed = Start(model);
      for (WeightId id = 0; id < model->plan().weights.size(); ++id) {
        const std::vector<WeightId> changed = {id};
        const ContextCut cut =
            CutContext(model->plan(), model->layout(), model->backend().real_bytes, changed);
        std::vector<std::byte> kept(cut.kept_bytes);
        const auto index = [&](const Step& step) {
          return static_cast<size_t>(&step - model->plan().steps.data());
        };
        computed->set_observer(
            [&](const Step& step, std::span<const StreamFrame> frames) {
              if (index(step) + 1 == model->plan().context.end) {
                CopyKept(cut, cut.runs.size(), model->layout(), frames.front(), kept.data());
              }
            },
            [&](const Step& step, std::span<const StreamFrame> frames) {
              for (size_t run = 0; run < cut.runs.size(); ++run) {
                if (cut.runs[run].begin == index(step)) {
                  CopyKept(cut, run, model->layout(), frames.front(), kept.data());
                }
              }
            });
        ASSERT_TRUE(computed->Reset().ok());
        ASSERT_TRUE(replayed->Reset().ok());
        for (const uint32_t token : Tokens(12, model->vocabulary_size(), id + 1)) {
          ASSERT_TRUE(computed->StepToken(token).ok());
          ASSERT_TRUE(replayed->StepTokenAfter(token, cut, kept).ok());
          ASSERT_EQ(Full(*replayed), Full(*computed)) << model->plan().weights[id].name;
        }
      }
    }
  }
}

TEST(ContextCut, PlansWithOtherStepsAreTold) {
  const auto model = Open(TinyMicronet({.layers = 2}), "cpu");
  EXPECT_TRUE(HaveTheSameSteps(model->plan(), Open(TinyMicronet({.layers = 2}), "cpu")->plan()));
  EXPECT_FALSE(HaveTheSameSteps(model->plan(), Open(TinyMicronet({.layers = 3}), "cpu")->plan()));
  EXPECT_FALSE(HaveTheSameSteps(
      model->plan(), Open(TinyMicronet({.quantised = true, .layers = 2}), "cpu")->plan()));
}

}  // namespace
}  // namespace kinglet::context_cut_test

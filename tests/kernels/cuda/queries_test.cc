// Which steps answer a query, for few lanes and for many. What they answer is ranking_test's.
#include "kernels/cuda/queries.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "kernels/cuda/emulated_device.h"
#include "kernels/cuda/program.h"
#include "runtime/model.h"
#include "tests/support/model_builder.h"

namespace kinglet::cuda::queries_test {
namespace {

// A MicroNet with a head and two tails, of so many columns, and a cache of so many pairs.
std::shared_ptr<const Model> ModelOf(uint32_t width, uint32_t pairs) {
  TinyOptions options;
  options.quantised = true;
  options.cache_capacity = pairs;
  options.vocabulary_size = 400;
  options.width = width;
  ModelOptions on_ref;
  on_ref.backend = "ref";  // which reads the weights where they lie
  return Model::FromBytes(SerialiseModel(TinyMicronet(options)).value(), on_ref).value();
}

// On a device whose blocks have so much shared memory.
Result<std::shared_ptr<const Program>> BindWith(const Model& model, uint64_t shared_bytes) {
  Emulation emulation;
  emulation.shared_bytes = shared_bytes;
  return Program::Bind(model.plan(), model.layout(), EmulatedDevice(emulation), {});
}

class QueriesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    model_ = ModelOf(8, 9);
    program_ =
        std::move(Program::Bind(model_->plan(), model_->layout(), EmulatedDevice(), {})).value();
  }
  static bool Has(const StepList& list, uint32_t kind) {
    return std::any_of(list.steps, list.steps + list.count,
                       [kind](const Step& step) { return step.kind == kind; });
  }
  std::shared_ptr<const Model> model_;
  std::shared_ptr<const Program> program_;
};

TEST_F(QueriesTest, ManyLanesMakeLogitsTwiceAndFewStoreThem) {
  const Queries& queries = program_->queries();
  ASSERT_TRUE(queries.can_rank());
  ASSERT_EQ(queries.clusters(), model_->plan().clusters.size());
  const uint32_t stored = MakeStep(LargestOfBlocks{}).kind;
  const uint32_t fused = MakeStep(LargestOfProducts{}).kind;
  const StepList few = queries.AllClusterSteps(kLanesWorthFusing - 1);
  const StepList many = queries.AllClusterSteps(kLanesWorthFusing);
  EXPECT_TRUE(Has(few, stored));
  EXPECT_FALSE(Has(few, fused));
  EXPECT_TRUE(Has(many, fused));
  uint32_t steps = 0;
  for (size_t i = 0; i < queries.clusters(); ++i) steps += queries.ClusterSteps(i, 1).count;
  EXPECT_EQ(steps, few.count);
}

// As on compute capability 7.5, which has less than a head of so many columns would take.
TEST_F(QueriesTest, LogitsAreNotMadeTwiceWhereABlockHasTooLittleSharedMemory) {
  constexpr uint64_t kLittle = 65536;
  const auto model = ModelOf(512, 9);
  const auto ample = BindWith(*model, 98304).value(), scarce = BindWith(*model, kLittle).value();
  const uint32_t fused = MakeStep(LargestOfProducts{}).kind;
  EXPECT_TRUE(Has(ample->queries().ClusterSteps(0, kLanesWorthFusing), fused));
  EXPECT_FALSE(Has(scarce->queries().ClusterSteps(0, kLanesWorthFusing), fused));
  EXPECT_TRUE(Has(scarce->queries().ClusterSteps(1, kLanesWorthFusing), fused));
  const StepList all = scarce->queries().AllClusterSteps(kLanesWorthFusing);
  for (const Step& step : std::span(all.steps, all.count)) EXPECT_LE(SharedBytesOf(step), kLittle);
}

TEST_F(QueriesTest, TheHostRanksWhereABlockHasTooLittleSharedMemory) {
  const auto model = ModelOf(8, 4000);
  RankWords query{};
  query.plan = BindWith(*model, 232448).value()->queries().Ranking(1, false);
  const uint64_t needed = query.SharedBytes();
  EXPECT_TRUE(BindWith(*model, needed).value()->queries().can_rank());
  EXPECT_FALSE(BindWith(*model, needed - 1).value()->queries().can_rank());
}

TEST_F(QueriesTest, StepsThatNeedMoreSharedMemoryThanABlockHasAreRefused) {
  const auto refused = BindWith(*model_, 100);
  EXPECT_EQ(refused.status().code(), KINGLET_UNSUPPORTED);
  const std::string message = refused.status().message();
  EXPECT_EQ(message.rfind("cuda: step ", 0), 0u) << message;
  EXPECT_NE(message.find("expected at most 100 bytes of a block's shared memory, found "),
            std::string::npos)
      << message;
}

TEST_F(QueriesTest, AWordIsInTheClusterThatThePlanSays) {
  const auto& clusters = model_->plan().clusters;
  for (size_t i = 0; i < clusters.size(); ++i) {
    EXPECT_EQ(program_->queries().ClusterOf(clusters[i].first), i);
    EXPECT_EQ(program_->queries().ClusterOf(clusters[i].first + clusters[i].size - 1), i);
  }
}

TEST_F(QueriesTest, NoMoreWordsAreRankedThanSurelyHaveANumber) {
  const uint32_t most = program_->queries().max_words();
  EXPECT_LE(most, RankedWords::kMost);
  EXPECT_LE(most, model_->vocabulary_size());
}

}  // namespace
}  // namespace kinglet::cuda::queries_test

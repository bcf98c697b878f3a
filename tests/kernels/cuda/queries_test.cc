// Which steps answer a question, for few lanes and for many. What they answer is ranking_test's.
#include "kernels/cuda/queries.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "kernels/cuda/emulated_device.h"
#include "kernels/cuda/program.h"
#include "runtime/model.h"
#include "tests/support/model_builder.h"

namespace kinglet::cuda {
namespace {

class QueriesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    TinyOptions options;
    options.quantised = true;
    options.cache_capacity = 9;
    options.vocabulary_size = 140;
    ModelOptions on_ref;
    on_ref.backend = "ref";  // which reads the weights where they lie
    model_ = Model::FromBytes(SerialiseModel(TinyMicronet(options)).value(), on_ref).value();
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

TEST_F(QueriesTest, AWordIsInTheClusterThatThePlanSays) {
  const auto& clusters = model_->plan().clusters;
  for (size_t i = 0; i < clusters.size(); ++i) {
    EXPECT_EQ(program_->queries().ClusterOf(clusters[i].first), i);
    EXPECT_EQ(program_->queries().ClusterOf(clusters[i].first + clusters[i].size - 1), i);
  }
}

TEST_F(QueriesTest, NoMoreWordsAreRankedThanSurelyHaveANumber) {
  const uint32_t most = program_->queries().most_words();
  EXPECT_LE(most, RankedWords::kMost);
  EXPECT_LE(most, model_->vocabulary_size());
}

}  // namespace
}  // namespace kinglet::cuda

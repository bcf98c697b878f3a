#include <gtest/gtest.h>

#include "tests/runtime/lower/lowering.h"
#include "tests/support/classifier_builder.h"

namespace kinglet::bag_classifier_test {
namespace {

std::shared_ptr<const ModelFile> FileOf(const TinyClassifierOptions& options) {
  return *ModelFile::FromBytes(*SerialiseModel(TinyClassifier(options)));
}

std::vector<std::string> Names(const Plan& plan, NodeRange range) {
  std::vector<std::string> names;
  for (size_t i = range.begin; i < range.end; ++i) names.push_back(plan.nodes[i].name);
  return names;
}
using Strings = std::vector<std::string>;

TEST(LowerClassifier, AnEmbeddingAloneIsOneNode) {
  const auto file = FileOf({.classes = 0});
  const auto plan = Lower(*file);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(Names(*plan, plan->context), Strings{"embedding"});
  EXPECT_EQ(plan->nodes.size(), 1U);
  EXPECT_EQ(EmbeddingNode(*plan), 0U);
  EXPECT_TRUE(plan->clusters.empty());
  EXPECT_FALSE(plan->classifier.has_value());
  for (const BufferSpec& buffer : plan->buffers) EXPECT_FALSE(buffer.state) << buffer.name;
}

TEST(LowerClassifier, TokensGoIntoTheBagOneByOne) {
  const auto file = FileOf({.hidden = 5, .max_pool = true, .padding = 2});
  const auto plan = Lower(*file);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(Names(*plan, plan->context), (Strings{"embedding", "bag"}));
  EXPECT_EQ(Names(*plan, plan->classifier->nodes),
            (Strings{"bag.features", "classifier.input", "classifier.hidden",
                     "classifier.hidden.output", "classifier", "classifier.normaliser"}));
  EXPECT_EQ(plan->classifier->nodes.end, plan->nodes.size());
  EXPECT_EQ(plan->classifier->padding, 2U);
  EXPECT_EQ(plan->buffer(plan->classifier->logits).count, 4U);
  const BagAppend& append = *OpsOf<BagAppend>(*plan).at(0);
  EXPECT_EQ(append.padding, 2U);
  for (const BufferId id : {append.sum, append.count, *append.largest}) {
    EXPECT_TRUE(plan->buffer(id).state);
  }
  EXPECT_EQ(plan->buffer(OpsOf<BagFeatures>(*plan).at(0)->out).count, 12U);
}

TEST(LowerClassifier, WithoutAHiddenLayerFeaturesGoIntoTheClasses) {
  const auto file = FileOf({});
  const auto plan = Lower(*file);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(Names(*plan, plan->classifier->nodes),
            (Strings{"bag.features", "classifier", "classifier.normaliser"}));
  EXPECT_FALSE(OpsOf<BagAppend>(*plan).at(0)->largest.has_value());
  const BufferId features = OpsOf<BagFeatures>(*plan).at(0)->out;
  EXPECT_EQ(plan->buffer(features).count, 6U);
  EXPECT_EQ(OpsOf<MatVec>(*plan).at(0)->x, features);
}

}  // namespace
}  // namespace kinglet::bag_classifier_test

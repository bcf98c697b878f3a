#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/runtime/lower/lowering.h"
#include "tests/support/translation_builder.h"

namespace kinglet::cross_attention_test {
namespace {

TEST(LowerCrossAttention, BetweenAttentionAndFeedForwardOfEachLayer) {
  const auto file = *ModelFile::FromBytes(*SerialiseModel(TinyTranslation()));
  const Plan plan = *Lower(*file);
  std::vector<std::string> names;
  for (size_t i = plan.context.begin; i < plan.context.end; ++i)
    names.push_back(plan.nodes[i].name);
  for (const char* layer : {"layers.0", "layers.1"}) {
    const auto at = [&](const std::string& node) {
      const auto found = std::find(names.begin(), names.end(), layer + node);
      EXPECT_NE(found, names.end()) << layer << node;
      return found - names.begin();
    };
    const auto norm = at(".norm_source");
    EXPECT_EQ(at(".residual1"), norm - 1);
    EXPECT_EQ(at(".source.query"), norm + 1);
    EXPECT_EQ(at(".source.attention"), norm + 2);
    EXPECT_EQ(at(".source.out"), norm + 3);
    EXPECT_EQ(at(".residual_source"), norm + 4);
    EXPECT_EQ(at(".norm2"), norm + 5);
  }
  // A layer's queries see that layer's memory.
  const auto attentions = OpsOf<SourceAttention>(plan);
  EXPECT_EQ(plan.buffer(attentions.at(0)->memory).name, "layers.0.source");
  EXPECT_EQ(plan.buffer(attentions.at(1)->memory).name, "layers.1.source");
  EXPECT_EQ(attentions[0]->window, 7u);
}

}  // namespace
}  // namespace kinglet::cross_attention_test

// The attention of recurrent decoders (runtime/lower/global_attention.cc).
#include <gtest/gtest.h>

#include <string>

#include "tests/runtime/lower/lowering.h"
#include "tests/support/recurrent_translation_builder.h"

namespace kinglet::global_attention_test {
namespace {

struct Lowered {
  explicit Lowered(const TinyRecurrentTranslationOptions& options)
      : file(*ModelFile::FromBytes(*SerialiseModel(TinyRecurrentTranslation(options)))),
        plan(*Lower(*file)) {}
  std::shared_ptr<const ModelFile> file;
  Plan plan;
};

TEST(LowerGlobalAttention, ScoresAndWhatTheyRead) {
  for (const AttentionScore score :
       {AttentionScore::kDot, AttentionScore::kGeneral, AttentionScore::kMlp}) {
    for (const bool quantised : {false, true}) {
      const Lowered lowered({.attention = score, .quantised = quantised});
      const auto attentions = OpsOf<SourceAttention>(lowered.plan);
      ASSERT_EQ(attentions.size(), 1u);
      const SourceAttention& op = *attentions[0];
      const bool additive = score == AttentionScore::kMlp;
      EXPECT_EQ(op.score, additive ? SourceScore::kAdditive : SourceScore::kDot);
      EXPECT_EQ(op.score_weight.has_value(), additive);
      EXPECT_EQ(op.heads, 1u);
      EXPECT_EQ(op.key_size, 8u);
      const BufferSpec& memory = lowered.plan.buffer(op.memory);
      EXPECT_EQ(memory.count, (additive ? 16u : 8u) * 7);
      EXPECT_EQ(memory.element == Element::kReal, additive || !quantised);
      EXPECT_EQ(lowered.plan.buffer(op.query).element, memory.element);
      EXPECT_EQ(op.weights_quantiser.has_value(), quantised && !additive);
      // tanh, unless the score is an mlp.
      EXPECT_EQ(OpsOf<ApplyActivation>(lowered.plan).size(), additive ? 0u : 1u);
    }
  }
  const Lowered none({.attention = std::nullopt});
  EXPECT_TRUE(OpsOf<SourceAttention>(none.plan).empty());
}

}  // namespace
}  // namespace kinglet::global_attention_test

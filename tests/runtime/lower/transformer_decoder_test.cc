#include <gtest/gtest.h>

#include "tests/runtime/lower/lowering.h"

namespace kinglet::transformer_decoder_test {
namespace {

TEST(LowerDecoder, AQuantisedLayerHasItsSevenQuantisersAndTheModelOneMore) {
  TinyOptions options;
  options.quantised = true;
  options.layers = 3;
  const auto file = TinyFile(options);
  const auto plan = Lower(*file);
  ASSERT_TRUE(plan.ok());
  // Six quantisers are steps; that of the attention weights is part of the attention.
  EXPECT_EQ(OpsOf<Quantise>(*plan).size(), 3u * 6 + 1);
  EXPECT_EQ(OpsOf<WindowAttention>(*plan).size(), 3u);
  for (const Step& step : plan->steps) {
    if (const auto* attention = std::get_if<WindowAttention>(&step.op)) {
      EXPECT_TRUE(attention->weights_quantiser.has_value());
    }
  }
}

TEST(LowerDecoder, AFloatModelHasNone) {
  const auto file = TinyFile({});
  const auto plan = Lower(*file);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(OpsOf<Quantise>(*plan).size(), 0u);
  EXPECT_FALSE(plan->cache.has_value());
  EXPECT_EQ(OpsOf<CacheAppend>(*plan).size(), 0u);
}

TEST(LowerDecoder, SizesFollowTheBlock) {
  TinyOptions options;
  options.layers = 1;
  options.heads = 3;
  options.key_size = 2;
  options.value_size = 7;
  options.window = 4;
  options.inner = 11;
  const auto file = TinyFile(options);
  const auto plan = Lower(*file);
  ASSERT_TRUE(plan.ok());
  const auto attention = OpsOf<WindowAttention>(*plan);
  ASSERT_EQ(attention.size(), 1u);
  EXPECT_EQ(plan->buffer(attention[0]->qkv).count, 3u * (2 * 2 + 7));
  EXPECT_EQ(plan->buffer(attention[0]->keys).count, 4u * 3 * 2);
  EXPECT_EQ(plan->buffer(attention[0]->values).count, 4u * 3 * 7);
  EXPECT_TRUE(plan->buffer(attention[0]->keys).state && plan->buffer(attention[0]->values).state);
  EXPECT_EQ(attention[0]->start, StreamStart::kMasked);
  size_t relu = 0;
  for (const MatVec* product : OpsOf<MatVec>(*plan)) {
    if (!product->relu) continue;
    ++relu;
    EXPECT_EQ(plan->buffer(product->y).count, 11u);
  }
  EXPECT_EQ(relu, 1u);
}

}  // namespace
}  // namespace kinglet::transformer_decoder_test

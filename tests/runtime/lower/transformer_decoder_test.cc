#include <gtest/gtest.h>

#include "tests/runtime/lower/lowering.h"
#include "tests/support/transformer_builder.h"

namespace kinglet::transformer_decoder_test {
namespace {

TEST(LowerDecoder, AQuantisedLayerHasItsSevenQuantisersAndTheModelOneMore) {
  TinyOptions options;
  options.quantised = true;
  options.layers = 3;
  const auto file = TinyFile(options);
  const auto plan = Lower(*file);
  ASSERT_TRUE(plan.ok());
  // Six quantisers are nodes; that of the attention weights is part of the attention.
  EXPECT_EQ(OpsOf<Quantise>(*plan).size(), 3u * 6 + 1);
  EXPECT_EQ(OpsOf<WindowAttention>(*plan).size(), 3u);
  for (const Node& node : plan->nodes) {
    if (const auto* attention = std::get_if<WindowAttention>(&node.op)) {
      EXPECT_TRUE(attention->weights_quantiser.has_value());
    }
  }
}

TEST(LowerDecoder, AFloatModelHasNoQuantisers) {
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

TEST(LowerDecoder, WindowsThatFitTakeNineBits) {
  const auto element = [](uint32_t heads, uint32_t size, bool quantised) {
    TinyOptions options;
    options.quantised = quantised;
    options.heads = heads;
    options.key_size = options.value_size = size;
    const auto file = TinyFile(options);
    const auto plan = Lower(*file);
    const WindowAttention& attention = *OpsOf<WindowAttention>(*plan).at(0);
    const BufferSpec& keys = plan->buffer(attention.keys);
    EXPECT_EQ(plan->buffer(attention.values).element, keys.element);
    EXPECT_EQ(keys.count, uint64_t{options.window} * heads * size);
    if (keys.element == Element::kCode9) {
      EXPECT_EQ(keys.row, heads * size);
    }
    return keys.element;
  };
  EXPECT_EQ(element(5, 8, true), Element::kCode9);
  EXPECT_EQ(element(8, 24, true), Element::kCode9);
  EXPECT_EQ(element(4, 8, true), Element::kCode16);   // 64 bytes are fewer than 72 with the padding
  EXPECT_EQ(element(1, 44, true), Element::kCode16);  // kernels read eight codes at a time
  EXPECT_EQ(element(16, 12, true), Element::kCode16);  // two heads would share a byte of signs
  EXPECT_EQ(element(8, 24, false), Element::kReal);
}

// Attention to relative positions reads 16-bit codes.
TEST(LowerDecoder, OnlyWindowsWithColumnsTakeNineBits) {
  for (const TinyPositions positions : {TinyPositions::kSlots, TinyPositions::kRelative}) {
    TinyTransformerOptions options;
    options.positions = positions;
    options.quantised = true;
    options.bits = 8;  // at 9 its quantisers have a code 256
    options.heads = 8;
    options.key_size = options.value_size = 8;
    const auto file = *ModelFile::FromBytes(*SerialiseModel(TinyTransformer(options)));
    const auto plan = Lower(*file);
    const BufferSpec& keys = plan->buffer(OpsOf<WindowAttention>(*plan).at(0)->keys);
    EXPECT_EQ(keys.element,
              positions == TinyPositions::kSlots ? Element::kCode9 : Element::kCode16);
  }
}

}  // namespace
}  // namespace kinglet::transformer_decoder_test

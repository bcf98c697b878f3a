// Which plans run given tokens of a stream together, and what their plan is then.
#include "kernels/cuda/bind_text.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/cuda/emulated_device.h"
#include "kernels/cuda/operations.h"
#include "kernels/cuda/program.h"
#include "tests/kernels/cuda/stacks.h"
#include "tests/support/define_builder.h"
#include "tests/support/recurrent_builder.h"
#include "tests/support/transformer_builder.h"
#include "tests/support/translation_builder.h"

namespace kinglet::cuda::bind_text_test {
namespace {

constexpr uint32_t kTokens = 10;

bool RunsTogether(const ModelDraft& draft) {
  return TextPlanOf(Open(draft, "ref")->plan(), kTokens).has_value();
}

TEST(CudaBindText, OnlyAttentionAndTheCacheMayJoinTokens) {
  EXPECT_TRUE(RunsTogether(TinyMicronet({})));
  EXPECT_TRUE(RunsTogether(TinyTransformer({.bits = 9})));
  EXPECT_FALSE(RunsTogether(TinyRecurrent({})));
  EXPECT_FALSE(RunsTogether(TinyRecurrent({.cells = {RecurrentCell::kQrnn}})));
  EXPECT_FALSE(RunsTogether(TinyDefine({})));
  EXPECT_FALSE(RunsTogether(TinyTranslation({})));
}

TEST(CudaBindText, RingsHaveASlotMoreForEachToken) {
  const auto model = Open(TinyMicronet(Stackable()), "ref");
  const Plan& plan = model->plan();
  const Plan text = *TextPlanOf(plan, kTokens);
  int rings = 0;
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const BufferSpec &before = plan.buffers[i], &after = text.buffers[i];
    if (!before.state) {
      EXPECT_EQ(after.count, before.count);
    } else if (before.ring.IsWhole()) {
      EXPECT_FALSE(after.state) << before.name;  // each token has its own
    } else {
      ++rings;
      EXPECT_EQ(after.ring.slots, before.ring.slots + kTokens);
      EXPECT_EQ(after.count / after.ring.slots, before.count / before.ring.slots);
    }
  }
  EXPECT_GT(rings, 0);
}

TEST(CudaBindText, TokensStoreTheirRowsBeforeEachAttention) {
  const auto model = Open(TinyMicronet(Stackable()), "ref");
  const auto program = Program::Bind(model->plan(), model->layout(), EmulatedDevice(), {}).value();
  ASSERT_NE(program->text(), nullptr);
  const NodeList list = program->text()->program->TextContext();
  int attentions = 0;
  for (uint32_t i = 0; i < list.count; ++i) {
    if (!IsKind<AttendTokens>(list.nodes[i]) && !IsKind<ScoreSlots>(list.nodes[i])) continue;
    ++attentions;
    ASSERT_GT(i, 0u);
    EXPECT_TRUE(IsKind<StoreOwnRow>(list.nodes[i - 1]));
  }
  EXPECT_GT(attentions, 0);
  const bool clusters = std::any_of(list.nodes, list.nodes + list.count,
                                    [](const Node& node) { return node.cluster_blocks > 0; });
  EXPECT_FALSE(clusters);
}

// How many tokens of a text a thread block of the attention takes.
uint32_t TokensTogether(uint32_t window, const Emulation& emulation = {}) {
  TinyOptions options = Stackable();
  options.window = window;
  const auto model = Open(TinyMicronet(options), "ref");
  const auto program =
      Program::Bind(model->plan(), model->layout(), EmulatedDevice(emulation), {}).value();
  const NodeList list = program->text()->program->TextContext();
  const Node* const found = std::find_if(list.nodes, list.nodes + list.count, IsKind<AttendTokens>);
  return found == list.nodes + list.count ? 0 : ArgumentsOf<AttendTokens>(*found).tokens;
}

TEST(CudaBindText, ABlockTakesAsManyTokensAsItsMemoryAllows) {
  EXPECT_EQ(TokensTogether(2), 8u);
  EXPECT_EQ(TokensTogether(200), 8u);
  EXPECT_EQ(TokensTogether(200, {.shared_bytes = 60000}), 4u);
  EXPECT_EQ(TokensTogether(1), 1u);  // whose ring is a token's own
}

TEST(CudaBindText, WithoutMemoryForItTokensGoOneByOne) {
  const auto model = Open(TinyMicronet(Stackable()), "ref");
  const auto bind = [&](const Emulation& emulation) {
    return Program::Bind(model->plan(), model->layout(), EmulatedDevice(emulation), {}).value();
  };
  const auto program = bind({});
  EXPECT_NE(program->text(), nullptr);
  EXPECT_EQ(bind({.memory_bytes = program->weight_bytes() - 1})->text(), nullptr);
}

}  // namespace
}  // namespace kinglet::cuda::bind_text_test

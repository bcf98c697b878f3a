// How many tokens of a text go together. session_many_test.cc checks their log-probabilities.
#include "runtime/text_block.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/session.h"
#include "tests/runtime/session_fixture.h"
#include "tests/support/define_builder.h"
#include "tests/support/recurrent_builder.h"
#include "tests/support/transformer_builder.h"

namespace kinglet::text_block_test {
namespace {

TEST(TextBlock, TransformersReadWeightsOnceForATextBlock) {
  const auto blocks = [](const ModelDraft& draft) {
    const auto model = Open(draft, "cpu");
    const auto session = Start(model);
    size_t most = 0;
    session->set_observer([&](const Node& node, std::span<const StreamFrame> frames) {
      if (std::holds_alternative<MatVec>(node.op)) most = std::max(most, frames.size());
    });
    uint64_t processed = 0;
    EXPECT_TRUE(session->StepMany(Tokens(40, 17), {}, processed).ok());
    return most;
  };
  EXPECT_EQ(blocks(TinyTransformer()), 32);
  EXPECT_EQ(blocks(TinyMicronet()), 32);
  EXPECT_EQ(blocks(TinyRecurrent()), 1);
}

// Attention reads a head's rows once for a text block, the neural cache its keys once for the
// tokens that are asked together. The reference kernels run token by token.
TEST(TextBlock, KernelsTakeOneStream) {
  const auto most = [](const std::string& backend) {
    const auto session =
        Start(Open(TinyMicronet({.quantised = true, .cache_capacity = 7}), backend));
    size_t attention = 0, cache = 0;
    session->set_observer([&](const Node& node, std::span<const StreamFrame> frames) {
      if (std::holds_alternative<WindowAttention>(node.op)) {
        attention = std::max(attention, frames.size());
      }
      if (std::holds_alternative<CacheWeights>(node.op)) cache = std::max(cache, frames.size());
    });
    uint64_t processed = 0;
    std::vector<double> out(40);
    EXPECT_TRUE(session->StepMany(Tokens(40, 17), out, processed).ok());
    return std::pair(attention, cache);
  };
#ifdef KINGLET_HAVE_CPU_BACKEND
  EXPECT_EQ(most("cpu"), std::pair(size_t{32}, kLanesTogether));
#endif
  EXPECT_EQ(most("ref"), std::pair(size_t{1}, size_t{1}));
}

TEST(TextBlock, KeptRowsBelongToOneStream) {
  EXPECT_EQ(TextBlock::TokensTogether(*Open(TinyDefine(), "cpu")), 1);
  EXPECT_EQ(TextBlock::TokensTogether(*Open(TinyTransformer(), "cpu")), 32);
}

}  // namespace
}  // namespace kinglet::text_block_test

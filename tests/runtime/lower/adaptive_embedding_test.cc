#include <gtest/gtest.h>

#include "tests/runtime/lower/lowering.h"

namespace kinglet {
namespace {

TEST(LowerEmbedding, IsOneStepThatFillsTheResidualStream) {
  for (int bins : {1, 3}) {
    TinyOptions options;
    options.bins = bins;
    const auto file = TinyFile(options);
    const auto* block = FindBlock<AdaptiveEmbedding>(file->description());
    const auto plan = Lower(*file);
    ASSERT_TRUE(plan.ok());
    const auto rows = OpsOf<EmbedRow>(*plan);
    ASSERT_EQ(rows.size(), 1u);
    EXPECT_EQ(rows[0]->bins.size(), static_cast<size_t>(bins));
    EXPECT_EQ(rows[0]->scale, block->scale);
    EXPECT_EQ(plan->buffer(rows[0]->out).name, "hidden");
  }
}

}  // namespace
}  // namespace kinglet

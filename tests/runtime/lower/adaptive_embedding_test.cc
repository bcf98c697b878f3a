#include <gtest/gtest.h>

#include "tests/runtime/lower/lowering.h"
#include "tests/support/define_builder.h"

namespace kinglet::adaptive_embedding_test {
namespace {

TEST(LowerEmbedding, IsOneNodeThatFillsTheResidualStream) {
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

// A DeFINE unit is one node too; its memory is scratch, not state.
TEST(LowerEmbedding, AUnitComesWithItsCache) {
  const auto file = *ModelFile::FromBytes(*SerialiseModel(TinyDefine({.cache_rows = 5})));
  const auto* block = FindBlock<AdaptiveEmbedding>(file->description());
  const auto plan = Lower(*file);
  ASSERT_TRUE(plan.ok());
  const auto rows = OpsOf<EmbedRow>(*plan);
  ASSERT_EQ(rows.size(), 1u);
  ASSERT_EQ(rows[0]->units.size(), 1u);
  const DefineRows& define = rows[0]->units[0];
  EXPECT_EQ(define.unit, block->units[0].unit);
  EXPECT_EQ(define.cache.rows(), 5u);
  EXPECT_EQ(plan->buffer(define.rows).count, 5u * block->width);
  EXPECT_EQ(plan->buffer(define.row_index).count, 10u);
  // Map's 12 features, e again, the widest input of 32 and three outputs of 25.
  EXPECT_EQ(plan->buffer(define.work).count, 12u + 25 + 32 + 3 * 25);
  for (const BufferId id : {define.work, define.rows, define.row_index}) {
    EXPECT_FALSE(plan->buffer(id).state);
  }
}

}  // namespace
}  // namespace kinglet::adaptive_embedding_test

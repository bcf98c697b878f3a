#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/runtime/lower/lowering.h"
#include "tests/support/masked_builder.h"

namespace kinglet::masked_model_test {
namespace {

struct LoweredMasked {
  explicit LoweredMasked(const TinyMaskedOptions& options)
      : file(*ModelFile::FromBytes(*SerialiseModel(TinyMasked(options)))), plan(*Lower(*file)) {}
  std::shared_ptr<const ModelFile> file;
  Plan plan;
};

TEST(LowerMaskedModel, ATokenSweepASegmentSweepAndOneForEachLayer) {
  const LoweredMasked lowered({.scores = 3, .layers = 3});
  const Plan& plan = lowered.plan;
  ASSERT_TRUE(plan.encoder.has_value());
  EXPECT_EQ(plan.encoder->vocabulary_size, 17u);
  EXPECT_EQ(plan.encoder->window, 9u);
  ASSERT_EQ(plan.encoder->sweeps.size(), 5u);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(plan.encoder->sweeps[i].of_segments, i == 1);
    EXPECT_EQ(plan.encoder->sweeps[i].end,
              i + 1 < 5 ? plan.encoder->sweeps[i + 1].begin : plan.nodes.size());
  }
  // Context, queries, reading, encoder.
  ASSERT_TRUE(plan.reading.has_value());
  EXPECT_EQ(plan.context.begin, 0u);
  EXPECT_EQ(plan.reading->pooling.begin, plan.clusters.back().nodes.end);
  EXPECT_EQ(plan.reading->scoring.begin, plan.reading->pooling.end);
  EXPECT_EQ(plan.encoder->sweeps.front().begin, plan.reading->scoring.end);
  EXPECT_EQ(plan.reading->segments, 2u);
  EXPECT_EQ(plan.buffer(*plan.reading->pooled).count, 8u);
  EXPECT_EQ(plan.buffer(*plan.reading->scores).count, 3u);

  std::set<std::string> nodes, buffers;
  for (const Node& node : plan.nodes) EXPECT_TRUE(nodes.insert(node.name).second) << node.name;
  for (const BufferSpec& buffer : plan.buffers) {
    EXPECT_TRUE(buffers.insert(buffer.name).second) << buffer.name;
  }
  EXPECT_EQ(plan.nodes[EmbeddingNode(plan)].name, "embed");
}

// A sweep must not read rows that it writes: a token would see other tokens in two different
// layers.
TEST(LowerMaskedModel, SweepsReadRowsOfTheSweepBefore) {
  const LoweredMasked lowered({.layers = 4});
  for (const NodeRange& sweep : lowered.plan.encoder->sweeps) {
    std::set<uint32_t> written;
    for (size_t i = sweep.begin; i < sweep.end; ++i) {
      if (const auto* store = std::get_if<StoreRow>(&lowered.plan.nodes[i].op)) {
        written.insert(static_cast<uint32_t>(store->rows));
      }
    }
    for (size_t i = sweep.begin; i < sweep.end; ++i) {
      if (const auto* attention = std::get_if<SourceAttention>(&lowered.plan.nodes[i].op)) {
        EXPECT_FALSE(written.contains(static_cast<uint32_t>(attention->memory)));
      }
    }
  }
}

TEST(LowerMaskedModel, SpansAreScoredTokenByToken) {
  const LoweredMasked lowered(
      {.words = false, .pooler = false, .scores = 2, .scored = ScoredPart::kSpans});
  const Reading& reading = *lowered.plan.reading;
  EXPECT_TRUE(reading.scores_spans);
  EXPECT_FALSE(reading.pooled.has_value());
  EXPECT_EQ(reading.pooling.begin, reading.pooling.end);
  EXPECT_TRUE(lowered.plan.clusters.empty());
}

}  // namespace
}  // namespace kinglet::masked_model_test

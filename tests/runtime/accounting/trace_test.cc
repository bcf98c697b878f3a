#include "runtime/accounting/trace.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/runtime/lower/lowering.h"
#include "tests/support/recurrent_translation_builder.h"
#include "tests/support/translation_builder.h"

namespace kinglet::trace_test {
namespace {

TEST(EncoderTrace, TokensOfASourceTakeOnePathForEachBin) {
  ModelDraft draft = TinyTranslation();
  for (Block& block : draft.description.blocks) {
    auto* encoder = std::get_if<TransformerEncoder>(&block);
    if (encoder == nullptr) continue;
    // Tokens 0 to 3, and the others with a table of their own.
    std::vector<EmbeddingBin>& bins = encoder->embedding.bins;
    const Shape shape = draft.tensors[bins[0].table].shape;
    const auto add = [&](uint64_t rows) {
      DenseF32 values;
      values.values.assign(rows * shape[1], 0.5f);
      draft.tensors.push_back({"rows" + std::to_string(rows), {rows, shape[1]}, values, false});
      return static_cast<TensorId>(draft.tensors.size() - 1);
    };
    bins = {{0, 4, add(4), std::nullopt}, {4, 9, add(9), std::nullopt}};
  }
  const auto file = ModelFile::FromBytes(*SerialiseModel(draft));
  ASSERT_TRUE(file.ok()) << file.status().message();
  const Plan plan = *Lower(**file);
  EXPECT_EQ(SourceEmbeddingOf(plan).bins.size(), 2u);
  EXPECT_EQ(EmbeddingOf(plan).bins.size(), 1u);
  const Trace trace = EncoderTrace(plan, std::vector<uint32_t>{3, 4, 12, 0, 0});
  ASSERT_EQ(trace.paths.size(), 2u);
  for (const auto& [path, count] : trace.paths) {
    EXPECT_TRUE(path.encodes);
    EXPECT_EQ(path.source_length, 5u);
    EXPECT_EQ(count, path.bin == 0 ? 3u : 2u);
    // All nodes of the encoder and no others.
    for (size_t i = 0; i < plan.nodes.size(); ++i) {
      EXPECT_EQ(RunsOn(plan, path, i), i >= plan.encoder->sweeps.front().begin);
    }
  }
  EXPECT_EQ(EncoderTrace(plan, {}).tokens(), 0u);
}

// The sweeps that a recurrent encoder makes once for a source are counted with its first token.
TEST(EncoderTrace, SweepsThatRunOnce) {
  const auto file = *ModelFile::FromBytes(*SerialiseModel(TinyRecurrentTranslation()));
  const Plan plan = *Lower(*file);
  const Trace trace = EncoderTrace(plan, std::vector<uint32_t>{3, 4, 12, 0});
  ASSERT_EQ(trace.paths.size(), 2u);
  for (const EncoderSweep& sweep : plan.encoder->sweeps) {
    uint64_t runs = 0;
    for (const auto& [path, count] : trace.paths) {
      if (RunsOn(plan, path, sweep.begin)) runs += count;
    }
    EXPECT_EQ(runs, sweep.order == SourceOrder::kOnce ? 1u : 4u);
  }
}

TEST(FullTrace, PathsAfterSourcesOfDifferentLengthsDiffer) {
  const auto file = *ModelFile::FromBytes(*SerialiseModel(TinyTranslation()));
  const Plan plan = *Lower(*file);
  const std::vector<uint32_t> target = {2, 5};
  Trace trace = FullTrace(plan, target, 3);
  trace += FullTrace(plan, target, 3);
  trace += FullTrace(plan, target, 4);
  EXPECT_EQ(trace.paths.size(), 4u);
  EXPECT_EQ(trace.tokens(), 6u);
  EXPECT_EQ(trace.distribution.additions, 3 * FullTrace(plan, target, 3).distribution.additions);
  const TokenPath& path = trace.paths.begin()->first;
  EXPECT_FALSE(path.encodes);
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    EXPECT_EQ(RunsOn(plan, path, i), i < plan.encoder->sweeps.front().begin);
  }
}

}  // namespace
}  // namespace kinglet::trace_test

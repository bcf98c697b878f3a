// From which memory an embedding's rows are read.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/cpu/bind.h"
#include "kernels/cpu/cpu.h"
#include "tests/kernels/cpu/vector_fixture.h"
#include "tests/support/case_builder.h"

namespace kinglet::cpu::embedding_test {
namespace {

// An embedding of 100 tokens in 24 columns, and a product with the same table or another.
OpCase EmbeddingCase(bool tied, bool pruned = false) {
  CaseBuilder builder("", 7);
  EmbedRow embed;
  embed.scale = 1;
  const WeightId table = builder.Matrix(100, 24, Storage::kPerRow, 9, pruned);
  embed.bins = {{0, 100, table, std::nullopt}};
  embed.out = builder.Floats("out", 24, Fill::kZero);
  MatVec product;
  product.weight = tied ? table : builder.Matrix(100, 24, Storage::kPerRow, 9);
  product.x = embed.out;
  product.y = builder.Floats("y", 100, Fill::kZero);
  OpCase op_case = builder.Finish(embed, kNotComparable, 0, 57);
  op_case.plan.nodes.push_back({"product", product});
  return op_case;
}

struct BoundCase {
  std::vector<Kernel> kernels;
  std::vector<WeightId> released;
};

BoundCase Bind(const VectorFunctions* functions, const OpCase& op_case) {
  BoundCase bound;
  const BufferLayout layout = LayOut(op_case.plan, sizeof(float)).value();
  const auto release = [&](WeightId id, MemoryRange) { bound.released.push_back(id); };
  bound.kernels = BindWith(functions, op_case.plan, layout, {release}).value();
  return bound;
}

uint64_t Total(const std::vector<MemoryRange>& ranges) {
  uint64_t bytes = 0;
  for (const MemoryRange& range : ranges) bytes += range.size();
  return bytes;
}

using EmbedRowTest = VectorFixture;

TEST_F(EmbedRowTest, ReadsARowOfTheFileAndKeepsIt) {
  const OpCase op_case = EmbeddingCase(false);
  const BoundCase bound = Bind(functions_, op_case);
  EXPECT_EQ(std::count(bound.released.begin(), bound.released.end(), 0u), 0);
  EXPECT_GT(std::count(bound.released.begin(), bound.released.end(), 1u), 0);
  // 24 codes of 9 bits are 27 bytes; a scale of 31 bits begins at bit 57 * 31, the 7th of a byte.
  EXPECT_EQ(Total(bound.kernels[0].token_weights(57)), 27u + 5);
  const auto& packed = std::get<PackedView>(op_case.plan.weights[0].values);
  EXPECT_EQ(bound.kernels[0].token_weights(57)[0].data(), packed.codes.data() + 57 * 27);
}

TEST_F(EmbedRowTest, SharesThePanelsOfAProductWithTheSameTable) {
  const OpCase op_case = EmbeddingCase(true);
  const BoundCase bound = Bind(functions_, op_case);
  EXPECT_GT(std::count(bound.released.begin(), bound.released.end(), 0u), 0);
  const MemoryRange row = bound.kernels[0].token_weights(57)[0];
  const MemoryRange matrix = bound.kernels[1].weights[0];
  EXPECT_EQ(row.data(), matrix.data() + 3 * 16 * 24);  // the low bytes of the fourth panel
}

// A projected table of integers, for which even the sum of two products exceeds 31 bits.
TEST_F(EmbedRowTest, LeavesSumsThatDoNotFitToTheReference) {
  const auto substituted = [&](int table_bits, int projection_bits) {
    CaseBuilder builder("", 7);
    EmbedRow embed;
    embed.scale = 1;
    embed.bins = {{0, 9, builder.Matrix(9, 24, Storage::kPerRow, table_bits),
                   builder.Matrix(5, 24, Storage::kPerRow, projection_bits)}};
    embed.out = builder.Floats("out", 5, Fill::kZero);
    const OpCase op_case = builder.Finish(embed);
    return Bind(functions_, op_case).kernels[0].is_substitute;
  };
  EXPECT_TRUE(substituted(16, 16));
  EXPECT_FALSE(substituted(16, 15));
}

}  // namespace
}  // namespace kinglet::cpu::embedding_test

// Lanes whose tokens are in different bins, and in no bin.
#include "kernels/cuda/embedding.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/kernels/cuda/lane_runs.h"
#include "tests/support/case_builder.h"
#include "tests/support/op_cases.h"

namespace kinglet::cuda::embedding_test {
namespace {

// Bins of every kind in one embedding: tokens 0 .. 4 of quantised rows, 5 .. 11 projected by
// integers, 12 .. 14 of floats, 15 .. 20 projected by floats, 21 .. 27 of coded rows that a real
// matrix projects.
OpCase BinsCase(uint32_t width) {
  CaseBuilder builder(CaseName("bins", {width}), width);
  EmbedRow op;
  op.scale = 1.75;
  const auto add = [&op](uint32_t size, WeightId table, std::optional<WeightId> projection,
                         double scale) {
    const uint32_t first = op.bins.empty() ? 0 : op.bins.back().first + op.bins.back().size;
    op.bins.push_back({first, size, table, projection, 0, scale});
  };
  add(5, builder.Matrix(5, width, Storage::kPerRow, 9), std::nullopt, 1);
  add(7, builder.Matrix(7, 37, Storage::kPerRow, 6), builder.Matrix(width, 37, Storage::kPerRow, 9),
      0.5);
  add(3, builder.Matrix(3, width, Storage::kF32, 0), std::nullopt, 3);
  add(6, builder.Matrix(6, 70, Storage::kF16, 0), builder.Matrix(width, 70, Storage::kF32, 0), 1);
  CodingScheme scheme;
  scheme.positions = 3;
  scheme.pools = {5, 2, 9};
  scheme.codebook = builder.Matrix(16, 4, Storage::kPerRow, 8);
  std::vector<uint32_t> codes;
  for (uint32_t i = 0; i < 7 * 3; ++i) codes.push_back(builder.Below(scheme.pools[i % 3]));
  add(7, builder.Tensor({"coded", {7, 12}, Coded{scheme, codes}}),
      builder.Matrix(width, 12, Storage::kPerRow, 9), 1);
  op.out = builder.Floats("out", width, Fill::kRandom);
  return builder.Finish(op);
}

TEST(CudaEmbedding, LanesOfDifferentBinsAreAsEachAlone) {
  for (const uint32_t width : {1u, 33u, 64u}) {
    std::vector<TokenAt> tokens;
    // Every token twice, and five ids that are in no bin, in an order that mixes the bins.
    for (uint32_t i = 0; i < 66; ++i) tokens.push_back({i * 7 % 33});
    ExpectLanesSameAsRef(BinsCase(width), tokens);
  }
}

TEST(CudaEmbedding, LanesOfOneBinLeaveTheOthersAlone) {
  ExpectLanesSameAsRef(BinsCase(33), std::vector<TokenAt>{{5}, {11}, {6}});
  ExpectLanesSameAsRef(BinsCase(33), std::vector<TokenAt>{{28}, {1000}, {UINT32_MAX}});
}

TEST(CudaEmbedding, ATiedTableIsOnTheDeviceOnce) {
  constexpr uint32_t kTokens = 500, kWidth = 64;
  CaseBuilder builder("tied", 1);
  const WeightId table = builder.Matrix(kTokens, kWidth, Storage::kPerRow, 8);
  EmbedRow embed{
      {{0, kTokens, table, std::nullopt}}, 1, builder.Floats("out", kWidth, Fill::kZero)};
  MatVec product{};
  product.weight = table;
  product.x = builder.Codes("x", kWidth, 9, Fill::kRandom);
  product.y = builder.Floats("y", kTokens, Fill::kZero);
  OpCase op_case = builder.Finish(embed);
  op_case.plan.nodes.push_back({"product", product});
  const BufferLayout layout = LayOut(op_case.plan, sizeof(float)).value();
  const auto program = Program::Bind(op_case.plan, layout, EmulatedDevice(), {});
  ASSERT_TRUE(program.ok()) << program.status().message();
  EXPECT_LT((*program)->weight_bytes(), uint64_t{kTokens} * kWidth * 5 / 4);
}

}  // namespace
}  // namespace kinglet::cuda::embedding_test

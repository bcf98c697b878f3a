// The demand of nodes, against sizes counted by hand.
#include "kernels/cuda/demand.h"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/cuda/operations.h"

namespace kinglet::cuda::demand_test {
namespace {

std::vector<StreamFrame> Lanes(size_t count, uint64_t position = 0, uint32_t token = 0) {
  StreamFrame frame{};
  frame.position = position;
  frame.token = token;
  return std::vector<StreamFrame>(count, frame);
}

// A product with a matrix of 9 bits: 100 rows are 7 tiles of 16, 70 columns are 3 tiles of 32.
IntegerProduct NineBits() {
  IntegerProduct product{};
  product.matrix.rows = 100;
  product.matrix.cols = 70;
  product.matrix.form = ByteForm::kSigned9;
  return product;
}

TEST(CudaDemand, AProductReadsItsBitsOnceAndMakesWholeTilesOfProducts) {
  constexpr uint64_t kEntries = 7 * 16 * 3 * 32;
  const auto demand = [](const IntegerProduct& product, size_t lanes) {
    return DemandOf(MakeNode(product), Lanes(lanes));
  };
  IntegerProduct product = NineBits();
  for (const auto& [lanes, streams] : {std::pair(1, 16), {16, 16}, {17, 32}, {64, 64}, {65, 80}}) {
    EXPECT_EQ(demand(product, lanes).weight_bytes, kEntries * 9 / 8 + 100 * 4) << lanes;
    EXPECT_EQ(demand(product, lanes).byte_products, kEntries * 4 * streams) << lanes;
  }
  product.x_is_byte = true;
  EXPECT_EQ(demand(product, 1).byte_products, kEntries * 2 * 16);
  const float bias[1] = {};
  product.finish.bias = bias;
  EXPECT_EQ(demand(product, 1).weight_bytes, kEntries * 9 / 8 + 200 * 4);
  product.matrix.form = ByteForm::kByte;
  EXPECT_EQ(demand(product, 1).weight_bytes, kEntries + 200 * 4);
  EXPECT_EQ(demand(product, 1).byte_products, kEntries * 16);
  product.matrix.form = ByteForm::kTwoBytes;
  product.x_is_byte = false;
  EXPECT_EQ(demand(product, 1).weight_bytes, kEntries * 2 + 200 * 4);
  EXPECT_EQ(demand(product, 1).byte_products, kEntries * 4 * 16);
}

TEST(CudaDemand, ANarrowMatrixHasNoTilesAndNeedsNoTensorCores) {
  IntegerProduct product = NineBits();
  product.matrix.cols = 4;
  product.matrix.form = ByteForm::kNarrow;
  EXPECT_EQ(DemandOf(MakeNode(product), Lanes(65)).weight_bytes, 112u * 4 * 2 + 100 * 4);
  EXPECT_EQ(DemandOf(MakeNode(product), Lanes(65)).byte_products, 0u);
}

TEST(CudaDemand, LanesWhoseTokensAreElsewhereAskForNothing) {
  IntegerProduct product = NineBits();
  product.tokens = {10, 5};
  std::vector<StreamFrame> lanes = Lanes(70, 0, 3);
  EXPECT_EQ(DemandOf(MakeNode(product), lanes).weight_bytes, 0u);
  EXPECT_EQ(DemandOf(MakeNode(product), lanes).byte_products, 0u);
  lanes[69].token = 12;  // in the last group of 16 lanes
  EXPECT_EQ(DemandOf(MakeNode(product), lanes).byte_products, 7u * 16 * 3 * 32 * 4 * 16);
}

TEST(CudaDemand, RealWeightsAreFourBytesEachAndNeedNoTensorCores) {
  RealProduct product{};
  product.rows = 30;
  product.cols = 50;
  EXPECT_EQ(DemandOf(MakeNode(product), Lanes(3)).weight_bytes, 30u * 50 * 4);
  EXPECT_EQ(DemandOf(MakeNode(product), Lanes(3)).byte_products, 0u);
  const float gain[1] = {};
  NormaliseVector norm{};
  norm.count = 24;
  norm.gain = norm.bias = gain;
  EXPECT_EQ(DemandOf(MakeNode(norm), Lanes(3)).weight_bytes, 2u * 24 * 4);
  EXPECT_EQ(DemandOf(MakeNode(AddVector{}), Lanes(3)).weight_bytes, 0u);
}

TEST(CudaDemand, PositionsAreReadAsFarAsALaneSees) {
  const float rows[1] = {};
  ScoreSlots attend{};
  attend.attention.heads = 2;
  attend.attention.key_size = 8;
  attend.attention.window = 20;
  attend.attention.positions.rows = rows;
  attend.attention.positions.count = 20;
  EXPECT_EQ(DemandOf(MakeNode(attend), Lanes(1, 4)).weight_bytes, 20u * 8 * 4);
  attend.attention.masked = true;
  EXPECT_EQ(DemandOf(MakeNode(attend), Lanes(3, 4)).weight_bytes, 5u * 8 * 4);
  EXPECT_EQ(DemandOf(MakeNode(attend), Lanes(3, 44)).weight_bytes, 20u * 8 * 4);
  attend.attention.positions.of_heads = true;
  attend.attention.positions.constants = rows;
  EXPECT_EQ(DemandOf(MakeNode(attend), Lanes(3, 44)).weight_bytes, 20u * 2 * (8 + 1) * 4);
}

TEST(CudaDemand, EachLaneGathersARow) {
  GatherRow gather{};
  gather.least_row_bytes = 77;
  EXPECT_EQ(DemandOf(MakeNode(gather), Lanes(5)).weight_bytes, 5u * 77);
  TableRows table;
  table.stored.cols = 64;
  table.stored.integers.form = ByteForm::kSigned9;
  EXPECT_EQ(table.RowBytes(), 64u * 9 / 8 + 4);
  table.codes.positions = 16;
  table.codes.bits = 5;
  EXPECT_EQ(table.RowBytes(), 10u);
}

}  // namespace
}  // namespace kinglet::cuda::demand_test

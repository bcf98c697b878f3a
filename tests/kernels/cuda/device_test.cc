#include "kernels/cuda/device.h"

#include <gtest/gtest.h>

#include "kernels/cuda/operations.h"

namespace kinglet::cuda::device_test {
namespace {

Node ProductOfRows(uint32_t rows) {
  IntegerProduct product{};
  product.matrix.rows = rows;
  product.matrix.cols = 1;
  return MakeNode(product);
}

TEST(BlocksOf, ANodeAreItsWorkItemsButNoMoreThanAsked) {
  EXPECT_EQ(BlocksOf(MakeNode(AddVector{}), 1, 1000), 1u);
  EXPECT_EQ(BlocksOf(MakeNode(AddVector{}), 7, 1000), 7u);
  EXPECT_EQ(BlocksOf(ProductOfRows(200000), 1, 1000), 1000u);
}

TEST(BlocksOf, AClusterAreItsOwnForEachLane) {
  DecoderStack<BestShape> stack{};
  EXPECT_EQ(BlocksOf(MakeNode(stack), 5, 3), 5 * stack.Blocks());
}

TEST(NodeByNode, IsAskedForByOne) {
  EXPECT_TRUE(AsksForNodeByNode("1").value());
  for (const char* const no : {static_cast<const char*>(nullptr), "", "0"}) {
    EXPECT_FALSE(AsksForNodeByNode(no).value());
  }
  EXPECT_EQ(AsksForNodeByNode("grid").status().message(),
            "cuda: KINGLET_CUDA_NODE_BY_NODE: expected 0 or 1, found \"grid\"");
}

TEST(FreeMemory, LanesLeaveSomeForKernelsAndGraphs) {
  EXPECT_EQ(WithoutReserve(kReservedBytes + 1000), 1000u);
  EXPECT_EQ(WithoutReserve(kReservedBytes), 0u);
  EXPECT_EQ(WithoutReserve(0), 0u);
}

}  // namespace
}  // namespace kinglet::cuda::device_test

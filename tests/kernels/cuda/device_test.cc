// How device nodes are divided into launches.
#include "kernels/cuda/device.h"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/cuda/operations.h"

namespace kinglet::cuda::device_test {
namespace {

Node ProductOfRows(uint32_t rows) {
  IntegerProduct product{};
  product.matrix.rows = rows;
  product.matrix.cols = 1;
  return MakeNode(product);
}

TEST(PlanLaunches, SmallNodesShareOneAndBigOnesHaveTheirOwn) {
  const std::vector<Node> nodes = {MakeNode(AddVector{}), ProductOfRows(512), MakeNode(AddVector{}),
                                   ProductOfRows(200000), MakeNode(AddVector{})};
  const NodeList list = {nodes.data(), 5, nodes.data()};
  const std::vector<Launch> launches = PlanLaunches(list, 1, 1000);
  ASSERT_EQ(launches.size(), 3u);
  EXPECT_EQ(launches[0].begin, 0u);
  EXPECT_EQ(launches[0].end, 3u);
  EXPECT_EQ(launches[0].blocks, kFewBlocks);
  EXPECT_EQ(launches[1].begin, 3u);
  EXPECT_EQ(launches[1].end, 4u);
  EXPECT_EQ(launches[1].blocks, 1000u);
  EXPECT_EQ(launches[2].begin, 4u);
  EXPECT_EQ(launches[2].end, 5u);
}

TEST(PlanLaunches, ManyLanesMakeEveryNodeBig) {
  const std::vector<Node> nodes = {MakeNode(AddVector{}), ProductOfRows(512)};
  const std::vector<Launch> launches = PlanLaunches({nodes.data(), 2, nodes.data()}, 4096, 1056);
  ASSERT_EQ(launches.size(), 2u);
  EXPECT_EQ(launches[0].blocks, 1056u);
}

TEST(FreeMemory, LanesLeaveSomeForKernelsAndGraphs) {
  EXPECT_EQ(WithoutReserve(kReservedBytes + 1000), 1000u);
  EXPECT_EQ(WithoutReserve(kReservedBytes), 0u);
  EXPECT_EQ(WithoutReserve(0), 0u);
}

TEST(PlanLaunches, NothingIsNoLaunch) { EXPECT_TRUE(PlanLaunches({}, 1, 100).empty()); }

}  // namespace
}  // namespace kinglet::cuda::device_test

#include "kernels/cuda/launch_barrier.h"

#include <gtest/gtest.h>

namespace kinglet::cuda::launch_barrier_test {
namespace {

// A binary for compute capability 8.0 on a device of 9.0 once launched thread-block clusters whose
// thread blocks never waited for each other.
TEST(LaunchBarrier, ClustersNeedCodeAndDeviceThatHaveThem) {
  EXPECT_TRUE(HasClusterBarrier(9, 90));
  EXPECT_TRUE(HasClusterBarrier(12, 90));
  EXPECT_TRUE(HasClusterBarrier(12, 120));
  EXPECT_FALSE(HasClusterBarrier(9, 80));
  EXPECT_FALSE(HasClusterBarrier(12, 75));
  EXPECT_FALSE(HasClusterBarrier(8, 80));
  EXPECT_FALSE(HasClusterBarrier(8, 90));
  EXPECT_FALSE(HasClusterBarrier(7, 75));
}

TEST(LaunchBarrier, ABinaryFor80RefusesClustersThatAreAskedFor) {
  const LaunchBarriers has = {HasClusterBarrier(9, 80), true};
  const auto cluster = has.Allowed("cluster");
  ASSERT_FALSE(cluster.ok());
  EXPECT_EQ(cluster.status().code(), KINGLET_UNSUPPORTED);
  EXPECT_EQ(cluster.status().message(),
            "cuda: KINGLET_CUDA_LAUNCHES: expected a device and a binary of compute capability 9.0 "
            "or higher, found cluster");
  const LaunchBarriers all = has.Allowed(nullptr).value();
  EXPECT_FALSE(all.Has(LaunchBarrier::kCluster));
  EXPECT_TRUE(all.Has(LaunchBarrier::kGrid));
  EXPECT_TRUE(all.MayGoWithout().ok());
}

TEST(LaunchBarrier, OneWayIsAllowedAtATime) {
  const LaunchBarriers has = {true, true};
  const auto allowed = [&](const char* asked) { return has.Allowed(asked).value(); };
  EXPECT_TRUE(allowed("").cluster && allowed("").grid);
  EXPECT_TRUE(allowed("cluster").cluster && !allowed("cluster").grid);
  EXPECT_TRUE(!allowed("grid").cluster && allowed("grid").grid);
  EXPECT_TRUE(!allowed("step").cluster && !allowed("step").grid);
  EXPECT_FALSE(allowed("cluster").MayGoWithout().ok());
  EXPECT_FALSE(allowed("grid").MayGoWithout().ok());
  EXPECT_TRUE(allowed("step").MayGoWithout().ok());
  EXPECT_FALSE(has.Allowed("nodes").ok());
  EXPECT_FALSE((LaunchBarriers{true, false}.Allowed("grid").ok()));
  EXPECT_FALSE(has.Has(LaunchBarrier::kNone));
}

}  // namespace
}  // namespace kinglet::cuda::launch_barrier_test

#include "kernels/cuda/cluster_barrier.h"

#include <gtest/gtest.h>

namespace kinglet::cuda::cluster_barrier_test {
namespace {

// A binary for compute capability 8.0 on a device of 9.0 once launched clusters whose blocks never
// waited for each other.
TEST(ClusterBarrier, NeedsCodeAndDeviceThatHaveIt) {
  EXPECT_TRUE(HasClusterBarrier(9, 90));
  EXPECT_TRUE(HasClusterBarrier(12, 90));
  EXPECT_TRUE(HasClusterBarrier(12, 120));
  EXPECT_FALSE(HasClusterBarrier(9, 80));
  EXPECT_FALSE(HasClusterBarrier(12, 75));
  EXPECT_FALSE(HasClusterBarrier(8, 80));
  EXPECT_FALSE(HasClusterBarrier(8, 90));
  EXPECT_FALSE(HasClusterBarrier(7, 75));
}

}  // namespace
}  // namespace kinglet::cuda::cluster_barrier_test

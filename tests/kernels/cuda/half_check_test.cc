// Half-precision tensor cores add exactly, on a device.
#include "kernels/cuda/half_check.h"

#include <gtest/gtest.h>

#include "kernels/cuda/cuda_device.h"

namespace kinglet::cuda::half_check_test {
namespace {

TEST(HalfCheck, SumsAreExactOnADevice) {
  const auto device = FirstCudaDevice();
  if (!device.ok()) GTEST_SKIP() << device.status().message();
  EXPECT_TRUE(HasExactHalves());
}

}  // namespace
}  // namespace kinglet::cuda::half_check_test

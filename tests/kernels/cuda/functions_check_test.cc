// The elementary functions have the same bits on host and device, for floats of every kind.
// Skipped, with the reason, where there is no device.
#include "kernels/cuda/functions_check.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/functions.h"

namespace kinglet::cuda::functions_check_test {
namespace {

// Every 257th float by its bits: all signs, exponents, denormals, infinities and NaNs.
std::vector<float> Floats() {
  std::vector<float> floats;
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 257) {
    floats.push_back(kinglet::internal::FloatFromBits(static_cast<uint32_t>(bits)));
  }
  return floats;
}

template <class HostFunction>
void CompareWithHost(Function function, HostFunction host) {
  const std::vector<float> x = Floats();
  std::vector<float> y(x.size());
  const CheckOutcome outcome = EvaluateOnDevice(function, x.data(), x.size(), y.data());
  if (outcome.code == CheckCode::kNoDevice) GTEST_SKIP() << outcome.message;
  ASSERT_EQ(outcome.code, CheckCode::kOk) << outcome.message;
  for (size_t i = 0; i < x.size(); ++i) {
    const float expected = host(x[i]);
    const bool same = std::bit_cast<uint32_t>(expected) == std::bit_cast<uint32_t>(y[i]);
    ASSERT_TRUE(same || (std::isnan(expected) && std::isnan(y[i])))
        << "at " << x[i] << ": host " << expected << ", device " << y[i];
  }
}

TEST(DeviceFunctions, ExpHasTheHostsBits) {
  CompareWithHost(Function::kExp, [](float x) { return Exp(x); });
}

TEST(DeviceFunctions, LogHasTheHostsBits) {
  CompareWithHost(Function::kLog, [](float x) { return Log(x); });
}

TEST(DeviceFunctions, SigmoidHasTheHostsBits) {
  CompareWithHost(Function::kSigmoid, [](float x) { return Sigmoid(x); });
}

TEST(DeviceFunctions, TanhHasTheHostsBits) {
  CompareWithHost(Function::kTanh, [](float x) { return Tanh(x); });
}

// For x above 0 SoftmaxTerm is no exponential, but host and device still run the same sequence.
TEST(DeviceFunctions, SoftmaxTermHasTheHostsBits) {
  CompareWithHost(Function::kSoftmaxTerm, [](float x) { return SoftmaxTerm(x); });
}

TEST(DeviceFunctions, GeluHasTheHostsBits) {
  CompareWithHost(Function::kGelu, [](float x) { return Gelu(x); });
}

TEST(DeviceFunctions, NothingToDoIsNoError) {
  const CheckOutcome outcome = EvaluateOnDevice(Function::kExp, nullptr, 0, nullptr);
  if (outcome.code == CheckCode::kNoDevice) {
    EXPECT_EQ(outcome.message.find("cudaGetDeviceCount: "), 0u);
    GTEST_SKIP() << outcome.message;
  }
  EXPECT_EQ(outcome.code, CheckCode::kOk) << outcome.message;
}

}  // namespace
}  // namespace kinglet::cuda::functions_check_test

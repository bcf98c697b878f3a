// The machine's CUDA device, where there is one; where there is none, the one line that says so.
#include "kernels/cuda/cuda_device.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

namespace kinglet::cuda {
namespace {

TEST(CudaDevice, SaysInOneLineWhyThereIsNone) {
  const Result<std::shared_ptr<Device>> device = FirstCudaDevice();
  if (device.ok()) GTEST_SKIP() << "there is one: " << (*device)->name();
  EXPECT_EQ(device.status().code(), KINGLET_UNSUPPORTED);
  const std::string message = device.status().message();
  EXPECT_EQ(message.rfind("backend: cuda: expected a CUDA device and its driver, found ", 0), 0u)
      << message;
  EXPECT_EQ(message.find('\n'), std::string::npos);
}

TEST(CudaDevice, CopiesThereAndBack) {
  const Result<std::shared_ptr<Device>> device = FirstCudaDevice();
  if (!device.ok()) GTEST_SKIP() << device.status().message();
  const std::unique_ptr<Queue> queue = std::move((*device)->CreateQueue()).value();
  const DeviceMemory memory = std::move(DeviceMemory::Allocate(*device, 64)).value();
  const uint32_t sent[2] = {7, 9};
  uint32_t back[4] = {1, 1, 1, 1};
  ASSERT_TRUE(queue->Zero(memory.data(), 64).ok());
  ASSERT_TRUE(queue->Upload(memory.data(), sent, sizeof sent).ok());
  ASSERT_TRUE(queue->Copy(memory.data() + 8, memory.data(), 4).ok());
  ASSERT_TRUE(queue->Download(back, memory.data(), sizeof back).ok());
  EXPECT_EQ(back[0], 7u);
  EXPECT_EQ(back[1], 9u);
  EXPECT_EQ(back[2], 7u);
  EXPECT_EQ(back[3], 0u);
  EXPECT_GT((*device)->FreeBytes(), 0u);
}

TEST(CudaDevice, RefusesMoreMemoryThanThereIs) {
  const Result<std::shared_ptr<Device>> device = FirstCudaDevice();
  if (!device.ok()) GTEST_SKIP() << device.status().message();
  EXPECT_EQ(DeviceMemory::Allocate(*device, size_t{1} << 50).status().code(),
            KINGLET_OUT_OF_MEMORY);
  EXPECT_TRUE(DeviceMemory::Allocate(*device, 1000).ok());
}

}  // namespace
}  // namespace kinglet::cuda

// The machine's CUDA device; without one, the one-line reason.
#include "kernels/cuda/cuda_device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace kinglet::cuda::cuda_device_test {
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

TEST(CudaDevice, WhatWasUploadedMayChangeAtOnce) {
  const Result<std::shared_ptr<Device>> device = FirstCudaDevice();
  if (!device.ok()) GTEST_SKIP() << device.status().message();
  const std::unique_ptr<Queue> queue = std::move((*device)->CreateQueue()).value();
  // Copies that together exceed the queue's pinned memory, and copies that each exceed it.
  for (const size_t bytes : {size_t{48}, size_t{800'000}, size_t{20'000'000}}) {
    constexpr size_t kTimes = 30;
    const DeviceMemory memory = std::move(DeviceMemory::Allocate(*device, kTimes * bytes)).value();
    std::vector<unsigned char> sent(bytes), back(bytes);
    for (size_t i = 0; i < kTimes; ++i) {
      std::fill(sent.begin(), sent.end(), static_cast<unsigned char>(i));
      ASSERT_TRUE(queue->Upload(memory.data() + i * bytes, sent.data(), bytes).ok());
    }
    for (size_t i = 0; i < kTimes; ++i) {
      ASSERT_TRUE(queue->Download(back.data(), memory.data() + i * bytes, bytes).ok());
      std::fill(sent.begin(), sent.end(), static_cast<unsigned char>(i));
      ASSERT_EQ(back, sent) << i;
    }
  }
}

TEST(CudaDevice, ABlockHasAtLeastTheSharedMemoryOfTheOldestDevice) {
  const Result<std::shared_ptr<Device>> device = FirstCudaDevice();
  if (!device.ok()) GTEST_SKIP() << device.status().message();
  EXPECT_GE((*device)->SharedBytesOfBlock(), 65536u);
}

TEST(CudaDevice, RefusesMoreMemoryThanThereIs) {
  const Result<std::shared_ptr<Device>> device = FirstCudaDevice();
  if (!device.ok()) GTEST_SKIP() << device.status().message();
  EXPECT_EQ(DeviceMemory::Allocate(*device, size_t{1} << 50).status().code(),
            KINGLET_OUT_OF_MEMORY);
  EXPECT_TRUE(DeviceMemory::Allocate(*device, 1000).ok());
}

}  // namespace
}  // namespace kinglet::cuda::cuda_device_test

// The memory and copies of the emulated device.
#include "kernels/cuda/emulated_device.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>

namespace kinglet::cuda::emulated_device_test {
namespace {

TEST(EmulatedDevice, CopiesAndCounts) {
  const std::shared_ptr<Device> device = EmulatedDevice();
  const std::unique_ptr<Queue> queue = std::move(device->CreateQueue()).value();
  const DeviceMemory memory = std::move(DeviceMemory::Allocate(device, 64)).value();
  const uint32_t sent[2] = {7, 9};
  uint32_t back[2] = {};
  ASSERT_TRUE(queue->Zero(memory.data(), 64).ok());
  ASSERT_TRUE(queue->Upload(memory.data(), sent, sizeof sent).ok());
  ASSERT_TRUE(queue->Copy(memory.data() + 32, memory.data(), sizeof sent).ok());
  ASSERT_TRUE(queue->Download(back, memory.data() + 32, sizeof back).ok());
  EXPECT_EQ(back[1], 9u);
  EXPECT_EQ(queue->work().bytes_to_device, 8u);
  EXPECT_EQ(queue->work().bytes_to_host, 8u);
  EXPECT_EQ(queue->work().launches, 0u);
}

TEST(EmulatedDevice, HasOnlySoMuchMemory) {
  Emulation emulation;
  emulation.memory_bytes = 100;
  const std::shared_ptr<Device> device = EmulatedDevice(emulation);
  Result<DeviceMemory> first = DeviceMemory::Allocate(device, 60);
  ASSERT_TRUE(first.ok());
  const Status refused = DeviceMemory::Allocate(device, 60).status();
  EXPECT_EQ(refused.code(), KINGLET_OUT_OF_MEMORY);
  EXPECT_EQ(refused.message(), "cuda: device memory: expected 60 bytes, found 40 free");
  first = DeviceMemory();
  EXPECT_EQ(device->FreeBytes(), 100u);
}

}  // namespace
}  // namespace kinglet::cuda::emulated_device_test

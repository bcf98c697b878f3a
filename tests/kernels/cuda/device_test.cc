// Launches, and the memory and copies of the emulated device.
#include "kernels/cuda/device.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "kernels/cuda/emulated_device.h"
#include "kernels/cuda/operations.h"

namespace kinglet::cuda {
namespace {

Step ProductOfRows(uint32_t rows) {
  IntegerProduct product{};
  product.matrix.rows = rows;
  product.matrix.cols = 1;
  return MakeStep(product);
}

TEST(PlanLaunches, SmallStepsShareOneAndBigOnesHaveTheirOwn) {
  const std::vector<Step> steps = {MakeStep(AddVector{}), ProductOfRows(512), MakeStep(AddVector{}),
                                   ProductOfRows(200000), MakeStep(AddVector{})};
  const StepList list = {steps.data(), 5, steps.data()};
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

TEST(PlanLaunches, ManyLanesMakeEveryStepBig) {
  const std::vector<Step> steps = {MakeStep(AddVector{}), ProductOfRows(512)};
  const std::vector<Launch> launches = PlanLaunches({steps.data(), 2, steps.data()}, 4096, 1056);
  ASSERT_EQ(launches.size(), 2u);
  EXPECT_EQ(launches[0].blocks, 1056u);
}

TEST(PlanLaunches, NothingIsNoLaunch) { EXPECT_TRUE(PlanLaunches({}, 1, 100).empty()); }

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
}  // namespace kinglet::cuda

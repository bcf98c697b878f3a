// The memory of a session's lanes on a device.
#include "kernels/cuda/lanes.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "kernels/cuda/backend.h"
#include "kernels/cuda/emulated_device.h"

namespace kinglet::cuda::lanes_test {
namespace {

constexpr uint64_t kCount = 20;
using Floats = std::array<float, kCount>;
constexpr BufferId kKept{1}, kSum{2};

// sum += kept.
Plan AddingPlan() {
  Plan plan;
  plan.buffers = {{.name = "unused", .element = Element::kReal, .count = 3},
                  {.name = "kept", .element = Element::kReal, .count = kCount, .state = true},
                  {.name = "sum", .element = Element::kReal, .count = kCount}};
  plan.nodes = {{"add", Add{kKept, kSum}}};
  return plan;
}

Floats Ramp(float first) {
  Floats floats;
  for (float& real : floats) real = first++;
  return floats;
}

class CudaLanes : public testing::Test {
 protected:
  std::shared_ptr<const DeviceProgram> Bind(const std::shared_ptr<Device>& device) {
    return BindTo(device, plan_, layout_, {}).value();
  }
  // The lane's buffer `sum`.
  static Floats Sum(DeviceLanes& lanes, uint32_t lane, const BufferLayout& layout) {
    std::vector<std::byte> scratch(layout.scratch_bytes), state(layout.state_bytes);
    StreamFrame frame{scratch.data(), state.data(), 0, 0};
    frame.lane = lane;
    EXPECT_TRUE(lanes.Fetch({&frame, 1}, std::array{kSum}).ok());
    Floats sum;
    std::copy_n(layout[kSum].At<float>(frame), kCount, sum.begin());
    return sum;
  }
  static StreamFrame FrameOf(uint32_t lane) {
    StreamFrame frame{};
    frame.lane = lane;
    return frame;
  }

  const Plan plan_ = AddingPlan();
  const BufferLayout layout_ = LayOut(plan_, sizeof(float)).value();
};

TEST_F(CudaLanes, NodesRunOnTheLanesThatAreNamed) {
  const auto program = Bind(EmulatedDevice());
  const auto lanes = std::move(program->CreateLanes(3)).value();
  const Floats first = Ramp(1), third = Ramp(5);
  ASSERT_TRUE(lanes->WriteState(0, 0, std::as_bytes(std::span(first))).ok());
  ASSERT_TRUE(lanes->WriteState(2, 0, std::as_bytes(std::span(third))).ok());
  for (const auto& named : {std::vector<uint32_t>{2, 0}, {2}, {}}) {
    std::vector<StreamFrame> frames;
    for (const uint32_t lane : named) frames.push_back(FrameOf(lane));
    ASSERT_TRUE(lanes->Run({0, 1}, frames).ok());
  }
  EXPECT_EQ(Sum(*lanes, 0, layout_), first);
  EXPECT_EQ(Sum(*lanes, 1, layout_), Floats{});
  Floats twice = third;
  for (float& real : twice) real *= 2;
  EXPECT_EQ(Sum(*lanes, 2, layout_), twice);
  const DeviceWork work = lanes->work();
  EXPECT_EQ(work.launches, 2u);
  // Not copied again: what the device has already of lane 2.
  EXPECT_EQ(work.bytes_to_device, 2 * sizeof(Floats) + 2 * sizeof(Lane));
  EXPECT_EQ(work.bytes_to_host, 3 * sizeof(Floats));
}

TEST_F(CudaLanes, StatesAreWrittenReadAndCopied) {
  const auto program = Bind(EmulatedDevice());
  const auto lanes = std::move(program->CreateLanes(2)).value();
  const Floats ramp = Ramp(1);
  ASSERT_TRUE(lanes->WriteState(0, 0, std::as_bytes(std::span(ramp))).ok());
  ASSERT_TRUE(lanes->CopyState(0, 1).ok());
  const auto read = [&](uint32_t lane) {
    Floats floats{};
    EXPECT_TRUE(lanes->ReadState(lane, 0, std::as_writable_bytes(std::span(floats))).ok());
    return floats;
  };
  EXPECT_EQ(read(0), ramp);
  EXPECT_EQ(read(1), ramp);
  ASSERT_TRUE(lanes->WriteState(1, 8, std::as_bytes(std::span(ramp).first(1))).ok());
  EXPECT_EQ(read(1)[2], 1);
}

TEST_F(CudaLanes, MemoryIsTheDevices) {
  Emulation emulation;
  emulation.memory_bytes = 10'000;
  const auto device = EmulatedDevice(emulation);
  const auto program = Bind(device);
  const uint64_t max_lanes = program->FreeBytes() / program->BytesPerLane();
  ASSERT_GT(max_lanes, 1u);
  EXPECT_EQ(program->CreateLanes(static_cast<uint32_t>(max_lanes) + 1).status().code(),
            KINGLET_OUT_OF_MEMORY);
  const uint64_t before = program->FreeBytes();
  {
    const auto lanes = program->CreateLanes(static_cast<uint32_t>(max_lanes));
    EXPECT_TRUE(lanes.ok()) << lanes.status().message();
    EXPECT_LT(program->FreeBytes(), program->BytesPerLane());
  }
  EXPECT_EQ(program->FreeBytes(), before);
}

// A device whose queues do nothing, and fail at one call.
class BrokenDevice : public Device {
 public:
  explicit BrokenDevice(int calls) : calls_(calls) {}
  const std::string& name() const override { return emulated_->name(); }
  uint64_t FreeBytes() const override { return emulated_->FreeBytes(); }
  uint64_t SharedBytesOfBlock() const override { return emulated_->SharedBytesOfBlock(); }
  bool HasExactHalves() const override { return emulated_->HasExactHalves(); }
  bool HasClustersFor(const Node& node) const override { return emulated_->HasClustersFor(node); }
  Result<std::byte*> Allocate(size_t bytes) override { return emulated_->Allocate(bytes); }
  void Free(std::byte* memory) override { emulated_->Free(memory); }
  Result<std::byte*> AllocateMapped(size_t bytes) override {
    return emulated_->AllocateMapped(bytes);
  }
  void FreeMapped(std::byte* memory) override { emulated_->FreeMapped(memory); }
  Result<std::unique_ptr<Queue>> CreateQueue() override {
    return std::unique_ptr<Queue>(std::make_unique<BrokenQueue>(calls_));
  }

 private:
  class BrokenQueue : public Queue {
   public:
    explicit BrokenQueue(int calls) : calls_(calls) {}
    Status Upload(std::byte*, const void*, size_t) override { return Call(); }
    Status Download(void*, const std::byte*, size_t) override { return Call(); }
    Status Copy(std::byte*, const std::byte*, size_t) override { return Call(); }
    Status Zero(std::byte*, size_t) override { return Call(); }
    Status Run(const NodeList&, const Lane*, uint32_t) override { return Call(); }
    Status Wait() override { return Call(); }

   private:
    Status Call() {
      // Only once: DeviceLanes itself makes all later calls fail.
      return calls_-- == 0 ? Status(KINGLET_INTERNAL, "cuda: broken") : Status();
    }
    int calls_;
  };
  std::shared_ptr<Device> emulated_ = EmulatedDevice();
  int calls_;
};

TEST_F(CudaLanes, AnErrorIsForGood) {
  const auto program = Bind(std::make_shared<BrokenDevice>(3));
  const auto lanes = std::move(program->CreateLanes(1)).value();
  const StreamFrame frame = FrameOf(0);
  EXPECT_TRUE(lanes->Wait().ok());
  EXPECT_EQ(lanes->Run({0, 1}, {&frame, 1}).message(), "cuda: broken");  // between its two calls
  EXPECT_EQ(lanes->Wait().message(), "cuda: broken");
  EXPECT_EQ(lanes->CopyState(0, 0).message(), "cuda: broken");
  EXPECT_EQ(lanes->Run({0, 1}, {}).message(), "cuda: broken");
}

}  // namespace
}  // namespace kinglet::cuda::lanes_test

// Every operation of the CUDA backend against `ref`, one at a time: on the emulated device, in both
// orders of its threads and blocks, and on a real one where there is one.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/emulated_device.h"
#include "kernels/cuda/program.h"
#include "kernels/op_name.h"
#include "kernels/ref/ref.h"
#include "tests/support/op_cases.h"
#ifdef KINGLET_CUDA
#include "kernels/cuda/cuda_device.h"
#endif

namespace kinglet::cuda {
namespace {

std::vector<OpCase> AllCases() {
  std::vector<OpCase> cases = EdgeOpCases();
  for (OpCase& op_case : RealisticOpCases()) cases.push_back(std::move(op_case));
  return cases;
}

// Memory of the device that is a copy of the host's.
class Mirror {
 public:
  Mirror(const std::shared_ptr<Device>& device, Queue& queue, std::byte* host, uint64_t bytes)
      : queue_(queue), host_(host), bytes_(bytes) {
    memory_ = std::move(DeviceMemory::Allocate(device, bytes)).value();
    EXPECT_TRUE(queue_.Upload(memory_.data(), host_, bytes_).ok());
  }
  std::byte* data() const { return memory_.data(); }
  void Fetch() { EXPECT_TRUE(queue_.Download(host_, memory_.data(), bytes_).ok()); }

 private:
  Queue& queue_;
  std::byte* host_;
  uint64_t bytes_;
  DeviceMemory memory_;
};

// The program's only step as a kernel of the host: frames are copied to the device and back. Each
// frame is `copies` lanes, of which the last is kept.
Kernel AsKernel(std::shared_ptr<const Program> program, const BufferLayout& layout,
                uint32_t copies) {
  const auto run = [program, layout, copies](const Frame& frame) {
    const std::unique_ptr<Queue> queue = std::move(program->device()->CreateQueue()).value();
    std::vector<std::unique_ptr<Mirror>> scratch, state, temporary;
    std::vector<std::byte> nothing(program->temporary_bytes(), std::byte{0xA5});
    std::vector<Lane> lanes;
    for (uint32_t i = 0; i < copies; ++i) {
      scratch.push_back(
          std::make_unique<Mirror>(program->device(), *queue, frame.scratch, layout.scratch_bytes));
      state.push_back(
          std::make_unique<Mirror>(program->device(), *queue, frame.state, layout.state_bytes));
      temporary.push_back(
          std::make_unique<Mirror>(program->device(), *queue, nothing.data(), nothing.size()));
      lanes.push_back({scratch.back()->data(), state.back()->data(), temporary.back()->data(),
                       frame.position, frame.source_length, frame.token});
    }
    Mirror of_lanes(program->device(), *queue, reinterpret_cast<std::byte*>(lanes.data()),
                    lanes.size() * sizeof(Lane));
    const StepList list = program->List({0, 1});
    EXPECT_TRUE(queue->Run(list, reinterpret_cast<const Lane*>(of_lanes.data()), copies).ok());
    scratch.back()->Fetch();
    state.back()->Fetch();
  };
  return {EachFrame(run)};
}

void ExpectSameAsRef(const std::shared_ptr<Device>& device, uint32_t copies) {
  std::set<std::string> missing;
  size_t compared = 0;
  for (const OpCase& op_case : AllCases()) {
    const BufferLayout layout = LayOut(op_case.plan, sizeof(float)).value();
    const auto program = Program::Bind(op_case.plan, layout, device, {});
    if (!program.ok()) {
      ASSERT_EQ(program.status().code(), KINGLET_UNSUPPORTED) << program.status().message();
      const std::string name(OpName(op_case.plan.steps[0].op));
      EXPECT_TRUE(program.status().message() ==
                      "cuda: step step: expected an operation that this backend has, found " +
                          name ||
                  program.status().message().ends_with("found codes of 32"))
          << program.status().message();
      missing.insert(op_case.name.substr(0, op_case.name.find(' ')) + ": " +
                     program.status().message());
      continue;
    }
    const auto reference = ref::BindFloat(op_case.plan, layout);
    OpRun expected(op_case, sizeof(float)), run(op_case, sizeof(float));
    expected.Run(reference->front());
    run.Run(AsKernel(*program, layout, copies));
    EXPECT_EQ(run.Difference(expected), "") << op_case.name;
    ++compared;
  }
  EXPECT_GT(compared, 100u);
  for (const std::string& text : missing) std::printf("not on cuda: %s\n", text.c_str());
}

TEST(CudaConformance, EmulatedEqualsRef) { ExpectSameAsRef(EmulatedDevice(), 1); }

TEST(CudaConformance, EmulatedBackwardsEqualsRef) {
  ExpectSameAsRef(EmulatedDevice({3, Order::kBackward}), 1);
}

TEST(CudaConformance, EmulatedWithManyLanesEqualsRef) { ExpectSameAsRef(EmulatedDevice(), 11); }

#ifdef KINGLET_CUDA
TEST(CudaConformance, DeviceEqualsRef) {
  const Result<std::shared_ptr<Device>> device = FirstCudaDevice();
  if (!device.ok()) GTEST_SKIP() << device.status().message();
  ExpectSameAsRef(*device, 1);
  ExpectSameAsRef(*device, 70);
}
#endif

}  // namespace
}  // namespace kinglet::cuda

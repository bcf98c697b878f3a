// Every operation of the CUDA backend against `ref`, one at a time: on the emulated device, in both
// orders of its threads and thread blocks, and on the machine's device if there is one.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/emulated_device.h"
#include "kernels/cuda/program.h"
#include "kernels/op.h"
#include "kernels/ref/ref.h"
#include "tests/kernels/cuda/lane_runs.h"
#include "tests/support/op_cases.h"
#ifdef KINGLET_CUDA
#include "kernels/cuda/cuda_device.h"
#endif

namespace kinglet::cuda::conformance_test {
namespace {

std::vector<OpCase> AllCases() {
  std::vector<OpCase> cases = EdgeOpCases();
#ifndef KINGLET_SANITIZED  // these run the loops of the edge cases, only more often
  for (OpCase& op_case : RealisticOpCases()) cases.push_back(std::move(op_case));
#endif
  return cases;
}

// The program's only plan node as a kernel of the host. It runs on `copies` equal lanes per frame.
Kernel AsKernel(std::shared_ptr<const Program> program, const BufferLayout& layout,
                uint32_t copies) {
  return {EachFrame([program, layout, copies](const StreamFrame& frame) {
    RunOnLanes(*program, layout, std::vector<StreamFrame>(copies, frame));
  })};
}

void ExpectSameAsRef(const std::shared_ptr<Device>& device, uint32_t copies, size_t every = 1) {
  std::set<std::string> missing;
  size_t compared = 0;
  const std::vector<OpCase> cases = AllCases();
  for (size_t i = 0; i < cases.size(); i += every) {
    const OpCase& op_case = cases[i];
    const BufferLayout layout = LayOut(op_case.plan, sizeof(float)).value();
    const auto program = Program::Bind(op_case.plan, layout, device, {});
    if (!program.ok()) {
      ASSERT_EQ(program.status().code(), KINGLET_UNSUPPORTED) << program.status().message();
      const std::string name(OpName(op_case.plan.nodes[0].op));
      EXPECT_TRUE(program.status().message() ==
                      "cuda: node node: expected an operation that this backend has, found " +
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
  EXPECT_GT(compared, cases.size() / every / 2);
  for (const std::string& text : missing) std::printf("not on cuda: %s\n", text.c_str());
}

TEST(CudaConformance, EmulatedEqualsRef) { ExpectSameAsRef(EmulatedDevice(), 1); }

// Sanitizers take ten times as long, and have seen the memory that each operation reads and writes.
#ifdef KINGLET_SANITIZED
constexpr size_t kEvery = 7;
#else
constexpr size_t kEvery = 1;
#endif

TEST(CudaConformance, EmulatedBackwardsEqualsRef) {
  ExpectSameAsRef(EmulatedDevice({3, Order::kBackward}), 1, kEvery);
}

TEST(CudaConformance, EmulatedWithManyLanesEqualsRef) {
  ExpectSameAsRef(EmulatedDevice(), 11, kEvery);
}

#ifdef KINGLET_CUDA
TEST(CudaConformance, DeviceEqualsRef) {
  const Result<std::shared_ptr<Device>> device = FirstCudaDevice();
  if (!device.ok()) GTEST_SKIP() << device.status().message();
  ExpectSameAsRef(*device, 1);
  ExpectSameAsRef(*device, 70);
}

// Every 37th case, for bench/gpu_check, whose checkers take ten to a hundred times as long. 37 is a
// prime, so that cases of many sizes are taken from each long list.
TEST(CudaConformance, SomeOnDeviceEqualRef) {
  const Result<std::shared_ptr<Device>> device = FirstCudaDevice();
  if (!device.ok()) GTEST_SKIP() << device.status().message();
  ExpectSameAsRef(*device, 1, 37);
  ExpectSameAsRef(*device, 70, 37);
}
#endif

}  // namespace
}  // namespace kinglet::cuda::conformance_test

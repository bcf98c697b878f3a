// The stack that kernels take, on every instruction set. A call takes at most 64 KiB
// (docs/RELIABILITY.md): the functions that run a kernel take the rest.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/ref/ref.h"
#include "tests/support/op_cases.h"
#include "tests/support/painted_stack.h"
#ifdef KINGLET_HAVE_CPU_BACKEND
#include "kernels/cpu/cpu.h"
#endif

namespace kinglet::stack_test {
namespace {

constexpr size_t kMostBytes = 54 << 10;

// The kernel, run on many frames, which have the same memory and so are of one stream.
Kernel OnManyFrames(const Kernel& kernel) {
  Kernel many;
  for (const Phase& phase : kernel.phases) {
    many.phases.push_back(FramePhase([&phase](const StreamFrame& frame) {
      std::vector<StreamFrame> frames(40, frame);
      phase.run(frames, {0, phase.chunks});
    }));
  }
  return many;
}

// Binds and runs the case: on one frame, and, where kernels take several together, on many.
using Bind = std::function<Result<std::vector<Kernel>>(const OpCase&)>;
void RunCase(const OpCase& op_case, const Bind& bind, bool many) {
  const Result<std::vector<Kernel>> kernels = bind(op_case);
  ASSERT_TRUE(kernels.ok()) << op_case.name << " " << kernels.status().message();
  OpRun run(op_case, sizeof(float));
  run.Run(kernels->front());
  if (many) run.Run(OnManyFrames(kernels->front()));
}

void CheckStack(const std::vector<OpCase>& cases, const Bind& bind, const std::string& backend) {
  const bool many = backend != "ref";
  const auto run_all = [&] {
    for (const OpCase& op_case : cases) RunCase(op_case, bind, many);
  };
  if (StackOf(run_all) <= kMostBytes) return;
  for (const OpCase& op_case : cases) {
    EXPECT_LE(StackOf([&] { RunCase(op_case, bind, many); }), kMostBytes)
        << op_case.name << " on " << backend;
  }
}

BufferLayout LayoutOf(const OpCase& op_case) { return LayOut(op_case.plan, sizeof(float)).value(); }

TEST(KernelStack, HasABoundOnEveryInstructionSet) {
  const std::vector<OpCase> cases = EdgeOpCases();  // stack does not grow with shapes
  const auto on_ref = [](const OpCase& op_case) {
    return ref::BindFloat(op_case.plan, LayoutOf(op_case));
  };
  CheckStack(cases, on_ref, "ref");
#ifdef KINGLET_HAVE_CPU_BACKEND
  for (const cpu::Target target : cpu::SupportedTargets()) {
    if (target == cpu::Target::kScalar) continue;  // kernels of ref
    const auto on_cpu = [target](const OpCase& op_case) {
      return cpu::BindWith(cpu::FindVectorFunctions(target), op_case.plan, LayoutOf(op_case));
    };
    CheckStack(cases, on_cpu, std::string(cpu::TargetName(target)));
  }
#endif
}

}  // namespace
}  // namespace kinglet::stack_test

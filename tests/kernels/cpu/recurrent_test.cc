// Recurrent cells whose results are known without computing them, on every instruction set of this
// machine. conformance_test.cc compares every element with ref.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/cpu/cpu.h"
#include "tests/support/case_builder.h"

namespace kinglet::cpu::recurrent_test {
namespace {

// Runs the case's node.
OpRun After(OpCase&&, Target) = delete;  // the case outlives the run
OpRun After(const OpCase& op_case, Target target) {
  const BufferLayout layout = LayOut(op_case.plan, sizeof(float)).value();
  const auto kernels = BindWith(FindVectorFunctions(target), op_case.plan, layout);
  OpRun run(op_case, sizeof(float));
  run.Run(kernels.value().front());
  return run;
}

// `count` copies of each gate's value.
std::vector<float> Gates(const std::vector<float>& values, size_t count) {
  std::vector<float> all;
  for (const float value : values) all.insert(all.end(), count, value);
  return all;
}

constexpr float kOpen = 200, kClosed = -200;  // a sigmoid of exactly 1 and 0

TEST(LstmGates, OpenAndShutGatesCopyAndClear) {
  for (const Target target : SupportedTargets()) {
    for (const size_t n : {1u, 15u, 16u, 37u}) {
      CaseBuilder builder("", n);
      LstmGates op{};
      op.recurrent = builder.Given("recurrent", Gates({0, 0, 0, 0}, n));
      op.hidden = builder.Floats("hidden", n, Fill::kRandom);
      // The cell is kept: input closed, forget open, output closed.
      op.input = builder.Given("kept", Gates({kClosed, kOpen, 3, kClosed}, n));
      op.cell = builder.Given("cell", std::vector<float>(n, 0.75f));
      const OpCase op_case = builder.Finish(op);
      OpRun run = After(op_case, target);
      for (const double cell : run.Values(op.cell)) EXPECT_EQ(cell, 0.75) << TargetName(target);
      for (const double hidden : run.Values(op.hidden)) EXPECT_EQ(hidden, 0.0);
    }
  }
}

TEST(GruGates, AShutUpdateTakesTheCandidateAndAnOpenOneKeeps) {
  for (const Target target : SupportedTargets()) {
    for (const bool keep : {false, true}) {
      constexpr size_t kUnits = 37;
      CaseBuilder builder("", 1);
      GruGates op{};
      // The reset gate is closed: the recurrent product of the candidate has no effect.
      op.input = builder.Given("input", Gates({kClosed, keep ? kOpen : kClosed, 50}, kUnits));
      op.recurrent = builder.Given("recurrent", Gates({0, 0, -900}, kUnits));
      op.hidden = builder.Given("hidden", std::vector<float>(kUnits, 0.25f));
      const OpCase op_case = builder.Finish(op);
      const OpRun run = After(op_case, target);
      for (const double hidden : run.Values(op.hidden)) {
        EXPECT_EQ(hidden, keep ? 0.25 : 1.0) << TargetName(target);
      }
    }
  }
}

TEST(RnnGates, RectifiesOrSaturates) {
  for (const Target target : SupportedTargets()) {
    for (const bool relu : {false, true}) {
      constexpr size_t kUnits = 19;
      CaseBuilder builder("", 1);
      RnnGates op{};
      op.input = builder.Given("input", std::vector<float>(kUnits, 100));
      op.recurrent = builder.Given("recurrent", std::vector<float>(kUnits, -300));
      op.hidden = builder.Floats("hidden", kUnits, Fill::kRandom);
      op.relu = relu;
      const OpCase op_case = builder.Finish(op);
      const OpRun run = After(op_case, target);
      for (const double hidden : run.Values(op.hidden)) EXPECT_EQ(hidden, relu ? 0.0 : -1.0);
    }
  }
}

TEST(QrnnGates, ThePreviousProductIsAdded) {
  for (const Target target : SupportedTargets()) {
    for (const bool previous : {false, true}) {
      constexpr size_t kUnits = 21;
      CaseBuilder builder("", 1);
      QrnnGates op{};
      op.input = builder.Given("input", Gates({80, kClosed, kOpen}, kUnits));
      const BufferId before = builder.Given("previous", Gates({0, 2 * kOpen, 0}, kUnits));
      if (previous) op.previous = before;
      op.cell = builder.Given("cell", std::vector<float>(kUnits, 0.375f));
      op.hidden = builder.Floats("hidden", kUnits, Fill::kRandom);
      const OpCase op_case = builder.Finish(op);
      const OpRun run = After(op_case, target);
      for (const double hidden : run.Values(op.hidden)) {
        EXPECT_EQ(hidden, previous ? 1.0 : 0.375) << TargetName(target);
      }
    }
  }
}

}  // namespace
}  // namespace kinglet::cpu::recurrent_test

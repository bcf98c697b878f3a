#include "kernels/cpu/cpu.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "kernels/cpu/bind.h"
#include "tests/support/environment_variable.h"
#include "tests/support/op_cases.h"

namespace kinglet::cpu::cpu_test {
namespace {

// Sets KINGLET_CPU for one test.
class Environment {
 public:
  explicit Environment(const char* value) {
    if (const char* before = std::getenv("KINGLET_CPU")) before_ = before;
    SetVariable("KINGLET_CPU", value);
  }
  ~Environment() { SetVariable("KINGLET_CPU", before_.c_str()); }

 private:
  std::string before_;
};

TEST(Targets, ScalarIsAlwaysThereAndLast) {
  const std::vector<Target> targets = SupportedTargets();
  ASSERT_FALSE(targets.empty());
  EXPECT_EQ(targets.back(), Target::kScalar);
  EXPECT_EQ(FindVectorFunctions(Target::kScalar), nullptr);
  for (const Target target : targets) {
    const auto found = FindTarget(TargetName(target));
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(*found, target);
    EXPECT_EQ(FindVectorFunctions(target) == nullptr, target == Target::kScalar);
  }
}

TEST(Targets, OfOtherMachinesAreRefused) {
  // No machine has both NEON and AVX2.
  const bool has_neon = FindVectorFunctions(Target::kNeon) != nullptr;
  const Target missing = has_neon ? Target::kAvx2 : Target::kNeon;
  EXPECT_EQ(FindVectorFunctions(missing), nullptr);
  const auto found = FindTarget(TargetName(missing));
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.status().code(), KINGLET_UNSUPPORTED);
}

TEST(BindCpu, FollowsTheEnvironment) {
  const OpCase op_case = RealisticOpCases().front();
  const BufferLayout layout = LayOut(op_case.plan, sizeof(float)).value();
  for (const Target target : SupportedTargets()) {
    const Environment environment(std::string(TargetName(target)).c_str());
    EXPECT_EQ(ChosenTarget().value(), target);
    EXPECT_TRUE(BindCpu(op_case.plan, layout).ok());
  }
  const Environment environment("");
  EXPECT_EQ(ChosenTarget().value(), SupportedTargets().front());
  EXPECT_TRUE(BindCpu(op_case.plan, layout).ok());
}

TEST(BindCpu, RefusesAnUnknownTargetByName) {
  const Environment environment("avx1024");
  EXPECT_EQ(ChosenTarget().status().code(), KINGLET_UNSUPPORTED);
  const auto kernels = BindCpu(Plan{}, BufferLayout{});
  ASSERT_FALSE(kernels.ok());
  EXPECT_EQ(kernels.status().code(), KINGLET_UNSUPPORTED);
  EXPECT_EQ(kernels.status().message().find("cpu: KINGLET_CPU: expected one of "), 0u);
  EXPECT_NE(kernels.status().message().find("scalar"), std::string::npos);
  EXPECT_NE(kernels.status().message().find("found \"avx1024\""), std::string::npos);
}

TEST(BindCpu, AnEmptyPlanHasNoKernels) {
  const auto kernels = BindCpu(Plan{}, BufferLayout{});
  ASSERT_TRUE(kernels.ok());
  EXPECT_TRUE(kernels->empty());
}

}  // namespace
}  // namespace kinglet::cpu::cpu_test

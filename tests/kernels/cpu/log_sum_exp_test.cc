// Normalisers worked out by hand, on every instruction set of this machine.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/cpu/cpu.h"
#include "tests/support/case_builder.h"

namespace kinglet::cpu::log_sum_exp_test {
namespace {

// The elements of buffer `id` after the case's node.
std::vector<double> ValuesAfter(const OpCase& op_case, Target target, BufferId id) {
  const BufferLayout layout = LayOut(op_case.plan, sizeof(float)).value();
  const auto kernels = BindWith(FindVectorFunctions(target), op_case.plan, layout);
  OpRun run(op_case, sizeof(float));
  run.Run(kernels.value().front());
  return run.Values(id);
}

TEST(LogSumExp, OfEqualLogitsIsTheLogOfTheirNumber) {
  for (const Target target : SupportedTargets()) {
    for (const size_t n : {1u, 2u, 31u, 32u, 1000u, 4096u, 16383u, 16384u, 50001u}) {
      CaseBuilder builder("", n);
      const float logit = n % 2 == 0 ? -2.5f : 100.0f;
      const BufferId x = builder.Given("x", std::vector<float>(n, logit));
      const BufferId out = builder.Floats("out", LogSumExp::kCount, Fill::kZero);
      const LogitTiles tiles = {builder.Floats("largest", SumTiles(n), Fill::kZero),
                                builder.Floats("sums", SumTiles(n), Fill::kZero)};
      const auto values = ValuesAfter(builder.Finish(LogSumExp{x, out, tiles}), target, out);
      EXPECT_EQ(values[0], n % 2 == 0 ? 0 : 100);
      EXPECT_NEAR(values[0] + values[1] - double{logit}, std::log(static_cast<double>(n)), 1e-6)
          << TargetName(target);
      EXPECT_EQ(values[2], double{logit});
    }
  }
}

}  // namespace
}  // namespace kinglet::cpu::log_sum_exp_test

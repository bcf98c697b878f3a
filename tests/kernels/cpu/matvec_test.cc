// Where an integer sum leaves 31 bits, and which products the vectors serve.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "kernels/cpu/bind.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/panels.h"
#include "tests/kernels/cpu/vector_fixture.h"
#include "tests/support/case_builder.h"

namespace kinglet::cpu {
namespace {

OpCase ProductCase(uint64_t cols, int bits, int x_bits, Storage storage = Storage::kPerRow) {
  CaseBuilder builder("", cols);
  MatVec op;
  op.weight = builder.Matrix(3, cols, storage, bits, false, Fill::kExtreme);
  op.x = builder.Vector("x", cols, x_bits, Fill::kExtreme);
  op.y = builder.Reals("y", 3, Fill::kZero);
  return builder.Finish(op);
}

using MatVecTest = VectorFixture;

TEST_F(MatVecTest, SumsBeyond31BitsAreExact) {
  for (const Target target : SupportedTargets()) {
    for (const uint64_t cols : {1u, 2u, 3u, 4u, 5u, 100u, 8192u}) {
      const OpCase op_case = ProductCase(cols, 16, 16);
      const BufferLayout layout = LayOut(op_case.plan, sizeof(float)).value();
      const auto kernels = BindWith(FindVectorFunctions(target), op_case.plan, layout);
      ASSERT_TRUE(kernels.ok());
      OpRun run(op_case, sizeof(float));
      run.Run(kernels->front());
      // Every product is (-2^15) * (-(2^15 - 1)); 8,192 of them need 43 bits.
      const int64_t sum = static_cast<int64_t>(cols) * 32768 * 32767;
      const std::vector<float> scales = DecodeCodes(op_case.plan.weights[0]).scales;
      const std::vector<double> y = run.Values(BufferId{1});
      for (size_t row = 0; row < 3; ++row) {
        const float step = op_case.plan.buffers[0].quantiser->step;
        EXPECT_EQ(y[row], static_cast<float>(sum) * (scales[row] * step))
            << TargetName(target) << " " << cols;
      }
    }
  }
}

TEST_F(MatVecTest, VectorsServeAllButWideCodesAndVeryLongRows) {
  const auto served = [&](const OpCase& op_case) {
    const BufferLayout layout = LayOut(op_case.plan, sizeof(float)).value();
    WeightStore weights(op_case.plan, *functions_);
    const BindContext context{op_case.plan, layout, *functions_, weights};
    return static_cast<bool>(BindOp(std::get<MatVec>(op_case.plan.steps[0].op), context));
  };
  EXPECT_TRUE(served(ProductCase(8192, 16, 16)));
  EXPECT_TRUE(served(ProductCase(33, 9, 0)));
  EXPECT_TRUE(served(ProductCase(33, 9, 0, Storage::kF32)));
  EXPECT_TRUE(served(ProductCase(33, 9, 9, Storage::kF32)));
  EXPECT_FALSE(served(ProductCase(33, 9, 18)));
  EXPECT_FALSE(served(ProductCase(8193, 9, 9)));
}

}  // namespace
}  // namespace kinglet::cpu

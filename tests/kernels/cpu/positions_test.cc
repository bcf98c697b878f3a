// When positions have a vectorised kernel.
#include <gtest/gtest.h>

#include <cstdint>

#include "kernels/cpu/bind.h"
#include "kernels/cpu/cpu.h"
#include "tests/kernels/cpu/vector_fixture.h"
#include "tests/support/case_builder.h"

namespace kinglet::cpu::positions_test {
namespace {

using AddPositionRowTest = VectorFixture;

TEST_F(AddPositionRowTest, ReadsTheRowOfItsPlaceInTheWindow) {
  CaseBuilder builder("", 1);
  const WeightId table = builder.Tensor({"", {3, 2}, DenseF32{{1, 2, 10, 20, 100, 200}}, false});
  const BufferId y = builder.Given("y", {0.5f, 0.25f});
  for (const Target target : SupportedTargets()) {
    for (const uint64_t position : {0u, 2u, 4u, 3000000u}) {
      CaseBuilder again = builder;
      const OpCase op_case = again.Finish(AddPositionRow{table, 3, y}, 0, position);
      const BufferLayout layout = LayOut(op_case.plan, sizeof(float)).value();
      const auto kernels = BindWith(FindVectorFunctions(target), op_case.plan, layout);
      OpRun run(op_case, sizeof(float));
      run.Run(kernels.value().front());
      const double scale = position % 3 == 0 ? 1 : position % 3 == 1 ? 10 : 100;
      EXPECT_EQ(run.Values(y), (std::vector<double>{0.5 + scale, 0.25 + 2 * scale}))
          << TargetName(target) << " " << position;
    }
  }
}

TEST_F(AddPositionRowTest, RowsLongerThanTheStackIsGivenAreLeftToTheReference) {
  for (const uint64_t columns : {kMaxColumns, kMaxColumns + 1}) {
    CaseBuilder builder("", 1);
    const AddPositionRow op{builder.Matrix(2, columns, Storage::kF32, 0), 2,
                            builder.Floats("y", columns, Fill::kZero)};
    const OpCase op_case = builder.Finish(op);
    const BufferLayout layout = LayOut(op_case.plan, sizeof(float)).value();
    WeightStore weights(op_case.plan, *functions_);
    const BindContext context{op_case.plan, layout, *functions_, weights};
    EXPECT_EQ(static_cast<bool>(BindOp(op, context)), columns == kMaxColumns);
  }
}

}  // namespace
}  // namespace kinglet::cpu::positions_test

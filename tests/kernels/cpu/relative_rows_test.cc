// Rows whose sinusoids are made in several parts, because of their memory: as the reference has them.
#include "kernels/cpu/relative_rows.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <new>

#include "kernels/ref/relative_rows.h"
#include "tests/kernels/cpu/vector_fixture.h"
#include "tests/support/case_builder.h"

namespace kinglet::cpu::relative_rows_test {
namespace {

using RelativeRowsTest = VectorFixture;

TEST_F(RelativeRowsTest, InSeveralPartsAreThoseOfTheReference) {
  // 256 rows of sinusoids together have 8 MiB.
  constexpr uint32_t kHeads = 2, kKeySize = 3, kWidth = 8192, kWindow = 300;
  CaseBuilder builder("rows", 3);
  RelativeRows op{};
  op.projection = builder.Matrix(kHeads * kKeySize, kWidth, Storage::kF32, 0);
  op.frequencies = builder.DenseVector(kWidth / 2);
  op.content_bias = builder.Matrix(kHeads, kKeySize, Storage::kF32, 0);
  op.position_bias = builder.Matrix(kHeads, kKeySize, Storage::kF32, 0);
  const BufferId x = builder.Reals("x", 1, Fill::kRandom), y = builder.Reals("y", 1, Fill::kZero);
  const OpCase op_case = builder.Finish(Add{x, y});
  const BufferLayout layout = LayOut(op_case.plan, sizeof(float)).value();
  uint64_t claimed = 0;
  const auto claim = [&](uint64_t bytes) { claimed += bytes; };
  WeightStore weights(op_case.plan, *functions_, {{}, claim});
  const BindContext context{op_case.plan, layout, *functions_, weights};
  const auto made = MakeRelativeTable(op, kHeads, kKeySize, kWindow, context);
  EXPECT_GE(claimed, kWindow * kHeads * (kKeySize + 1) * sizeof(float));

  ref::WeightStore reference_weights(op_case.plan);
  const ref::RelativeTable<float> expected(op, kHeads, kWindow, reference_weights);
  ASSERT_EQ(made->rows, kWindow);
  for (size_t row = 0; row < kWindow; ++row) {
    for (size_t head = 0; head < kHeads; ++head) {
      const size_t at = row * kHeads + head;
      EXPECT_EQ(made->constants[at], expected.Constant(row, head)) << row;
      for (size_t i = 0; i < kKeySize; ++i) {
        EXPECT_EQ(made->keys[at * kKeySize + i], expected.Key(row, head)[i]) << row;
      }
    }
  }
  // Nothing is made that may not be taken.
  const auto refuse = [](uint64_t) { throw std::bad_alloc(); };
  WeightStore scarce(op_case.plan, *functions_, {{}, refuse});
  const BindContext without{op_case.plan, layout, *functions_, scarce};
  EXPECT_THROW(MakeRelativeTable(op, kHeads, kKeySize, kWindow, without), std::bad_alloc);
}

}  // namespace
}  // namespace kinglet::cpu::relative_rows_test

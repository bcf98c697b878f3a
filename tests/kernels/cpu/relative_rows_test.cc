#include "kernels/cpu/relative_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <new>
#include <optional>
#include <vector>

#include "kernels/cpu/cpu.h"
#include "kernels/ref/relative_rows.h"
#include "tests/kernels/cpu/vector_fixture.h"
#include "tests/support/case_builder.h"

namespace kinglet::cpu::relative_rows_test {
namespace {

constexpr uint32_t kHeads = 3, kKeySize = 7, kWidth = 50, kWindow = 40;

// The textbook's formula, from the tensors of the case.
struct Expected {
  std::vector<double> projection, frequencies, content, position;

  double Key(size_t column, size_t distance) const {
    double sum = 0;
    for (size_t i = 0; i < kWidth; ++i) {
      const double angle = static_cast<double>(distance) * frequencies[i % frequencies.size()];
      sum += projection[column * kWidth + i] *
             (i < frequencies.size() ? std::sin(angle) : std::cos(angle));
    }
    return sum;
  }
};

std::vector<double> Doubles(const TensorView& view) {
  const std::vector<float> values = DecodedValues(view);
  return {values.begin(), values.end()};
}

TEST(RelativeRows, AreTheProjectedSinusoidsOldestFirst) {
  for (const Storage storage : {Storage::kF32, Storage::kPerRow}) {
    CaseBuilder builder("", 3);
    RelativeRows rows{};
    rows.projection =
        builder.Matrix(kHeads * kKeySize, kWidth, storage, storage == Storage::kF32 ? 0 : 9);
    DenseF32 frequencies;
    for (uint32_t j = 0; j < kWidth / 2; ++j) {
      frequencies.values.push_back(static_cast<float>(std::pow(10000.0, -2.0 * j / kWidth)));
    }
    rows.frequencies = builder.Tensor({"", {kWidth / 2}, std::move(frequencies), false});
    rows.content_bias = builder.Matrix(kHeads, kKeySize, Storage::kF32, 0);
    rows.position_bias = builder.Matrix(kHeads, kKeySize, Storage::kF32, 0);
    const Expected expected{
        Doubles(builder.View(rows.projection)), Doubles(builder.View(rows.frequencies)),
        Doubles(builder.View(rows.content_bias)), Doubles(builder.View(rows.position_bias))};
    const OpCase op_case =
        builder.Finish(AddQueryBias{rows.content_bias, builder.Floats("y", 3, Fill::kZero)});
    const BufferLayout layout = LayOut(op_case.plan, sizeof(float)).value();
    for (const Target target : SupportedTargets()) {
      const VectorFunctions* functions = FindVectorFunctions(target);
      if (functions == nullptr) continue;
      uint64_t released = 0;
      const auto release = [&](WeightId weight, MemoryRange bytes) {
        EXPECT_EQ(weight, rows.projection);
        released += bytes.size();
      };
      WeightStore weights(op_case.plan, *functions, {release});
      const BindContext context{op_case.plan, layout, *functions, weights};
      for (const std::optional<uint32_t> clamp :
           {std::optional<uint32_t>(), std::optional<uint32_t>(0), std::optional<uint32_t>(11),
            std::optional<uint32_t>(kWindow - 1), std::optional<uint32_t>(1000)}) {
        rows.clamp = clamp;
        const auto table = MakeRelativeTable(rows, kHeads, kKeySize, kWindow, context);
        ASSERT_EQ(table->rows, std::min<size_t>(kWindow, clamp.value_or(1000) + 1));
        for (size_t row = 0; row < table->rows; ++row) {
          const size_t distance = table->rows - 1 - row;
          for (size_t head = 0; head < kHeads; ++head) {
            double constant = 0;
            for (size_t i = 0; i < kKeySize; ++i) {
              const size_t column = head * kKeySize + i;
              const double key = expected.Key(column, distance);
              EXPECT_NEAR(table->keys[row * kHeads * kKeySize + column], key, 2e-4);
              constant += (expected.position[column] - expected.content[column]) * key;
            }
            EXPECT_NEAR(table->constants[row * kHeads + head], constant, 1e-2);
          }
        }
      }
      // The rows are made from the projection, whose bytes are not needed any more.
      EXPECT_EQ(released, 0u);
      weights.LayOut();
      EXPECT_GT(released, kHeads * kKeySize * kWidth);
    }
  }
}

// Sinusoids are computed in several parts, to limit their memory.
using RelativeRowsTest = VectorFixture;

TEST_F(RelativeRowsTest, InSeveralPartsAreThoseOfTheReference) {
  // 256 rows of sinusoids together have 8 MiB.
  constexpr uint32_t kManyWidth = 8192, kManyRows = 300;
  CaseBuilder builder("rows", 3);
  RelativeRows op{};
  op.projection = builder.Matrix(kHeads * kKeySize, kManyWidth, Storage::kF32, 0);
  op.frequencies = builder.DenseVector(kManyWidth / 2);
  op.content_bias = builder.Matrix(kHeads, kKeySize, Storage::kF32, 0);
  op.position_bias = builder.Matrix(kHeads, kKeySize, Storage::kF32, 0);
  const BufferId x = builder.Floats("x", 1, Fill::kRandom), y = builder.Floats("y", 1, Fill::kZero);
  const OpCase op_case = builder.Finish(Add{x, y});
  const BufferLayout layout = LayOut(op_case.plan, sizeof(float)).value();
  uint64_t claimed = 0;
  const auto claim = [&](uint64_t bytes) { claimed += bytes; };
  WeightStore weights(op_case.plan, *functions_, {{}, claim});
  const BindContext context{op_case.plan, layout, *functions_, weights};
  const auto made = MakeRelativeTable(op, kHeads, kKeySize, kManyRows, context);
  EXPECT_GE(claimed, kManyRows * kHeads * (kKeySize + 1) * sizeof(float));

  ref::WeightStore reference_weights(op_case.plan);
  const ref::RelativeTable<float> expected(op, kHeads, kManyRows, reference_weights);
  ASSERT_EQ(made->rows, kManyRows);
  for (size_t row = 0; row < kManyRows; ++row) {
    for (size_t head = 0; head < kHeads; ++head) {
      const size_t at = row * kHeads + head;
      EXPECT_EQ(made->constants[at], expected.Constant(row, head)) << row;
      for (size_t i = 0; i < kKeySize; ++i) {
        EXPECT_EQ(made->keys[at * kKeySize + i], expected.Key(row, head)[i]) << row;
      }
    }
  }
  // Memory that may not be taken is not allocated.
  const auto refuse = [](uint64_t) { throw std::bad_alloc(); };
  WeightStore scarce(op_case.plan, *functions_, {{}, refuse});
  const BindContext without{op_case.plan, layout, *functions_, scarce};
  EXPECT_THROW(MakeRelativeTable(op, kHeads, kKeySize, kManyRows, without), std::bad_alloc);
}

}  // namespace
}  // namespace kinglet::cpu::relative_rows_test

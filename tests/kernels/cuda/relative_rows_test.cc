// The position rows that the device computes, against those of `ref` and against the formula.
#include "kernels/cuda/relative_rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/cuda/emulated_device.h"
#include "kernels/ref/relative_rows.h"
#include "tests/support/case_builder.h"

namespace kinglet::cuda::relative_rows_test {
namespace {

struct Shape {
  uint32_t heads, key_size, width, window;
  std::optional<uint32_t> clamp;
};

void ExpectRows(const Shape& shape) {
  const uint64_t columns = uint64_t{shape.heads} * shape.key_size;
  CaseBuilder builder("rows", 3);
  RelativeRows op{};
  op.projection = builder.Matrix(columns, shape.width, Storage::kPerRow, 9);
  op.frequencies = builder.DenseVector(shape.width / 2);
  op.content_bias = builder.Matrix(shape.heads, shape.key_size, Storage::kF32, 0);
  op.position_bias = builder.Matrix(shape.heads, shape.key_size, Storage::kF32, 0);
  op.clamp = shape.clamp;
  const BufferId x = builder.Floats("x", 1, Fill::kRandom);
  const BufferId y = builder.Floats("y", 1, Fill::kRandom);
  const OpCase op_case = builder.Finish(Add{x, y});
  const BufferLayout layout = LayOut(op_case.plan, sizeof(float)).value();
  const std::shared_ptr<Device> device = EmulatedDevice();
  const std::unique_ptr<Queue> queue = std::move(device->CreateQueue()).value();
  std::vector<DeviceMemory> memory;
  WeightStore weights(op_case.plan, device, *queue, memory);
  Binder binder(op_case.plan, layout, weights);
  const PositionRows made =
      MakeRelativeRows(op, shape.heads, shape.key_size, shape.window, binder).value();
  EXPECT_EQ(made.count, op.Count(shape.window));

  ref::WeightStore reference_weights(op_case.plan);
  const ref::RelativeTable<float> expected(op, shape.heads, shape.window, reference_weights);
  const std::vector<float> projection = DecodedValues(op_case.plan.weights[op.projection]);
  const std::vector<float> frequencies = DecodedValues(op_case.plan.weights[op.frequencies]);
  for (uint32_t row = 0; row < made.count; ++row) {
    const double distance = made.count - 1 - row;
    for (uint32_t head = 0; head < shape.heads; ++head) {
      const uint64_t at = uint64_t{row} * shape.heads + head;
      EXPECT_EQ(made.constants[at], expected.Constant(row, head));
      for (uint32_t i = 0; i < shape.key_size; ++i) {
        const float found = made.rows[at * shape.key_size + i];
        EXPECT_EQ(found, expected.Key(row, head)[i]);
        const float* of = projection.data() + (uint64_t{head} * shape.key_size + i) * shape.width;
        double sum = 0;
        for (size_t j = 0; j < frequencies.size(); ++j) {
          sum += of[j] * std::sin(distance * frequencies[j]);
          sum += of[frequencies.size() + j] * std::cos(distance * frequencies[j]);
        }
        EXPECT_NEAR(found, sum, 1e-4);
      }
    }
  }
}

TEST(CudaRelativeRows, EqualRefAndTheFormula) {
  ExpectRows({1, 1, 2, 1, {}});
  ExpectRows({2, 5, 10, 20, {}});
  ExpectRows({3, 33, 40, 20, 0});
  ExpectRows({3, 16, 34, 20, 7});
  ExpectRows({1, 40, 16, 5, 100});
}

}  // namespace
}  // namespace kinglet::cuda::relative_rows_test

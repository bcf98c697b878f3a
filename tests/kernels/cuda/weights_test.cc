// Quantised matrices in tiles of bytes: every entry comes back, and the file's bytes are released.
#include "kernels/cuda/weights.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "kernels/cuda/emulated_device.h"
#include "tests/support/case_builder.h"

namespace kinglet::cuda::weights_test {
namespace {

TEST(CudaWeights, EveryEntryComesBack) {
  for (const int bits : {2, 7, 8, 9, 10, 13, 16}) {
    for (const auto& [rows, cols] :
         {std::pair{1u, 1u}, {16u, 32u}, {17u, 33u}, {40u, 100u}, {21u, 3u}}) {
      std::vector<int16_t> codes;
      const int32_t limit = 1 << (bits - 1);
      for (uint32_t i = 0; i < rows * cols; ++i) {
        codes.push_back(
            static_cast<int16_t>(static_cast<int32_t>(i * 2654435761u >> 8) % (2 * limit) - limit));
      }
      codes[0] = static_cast<int16_t>(-limit);
      const BytePlanes planes = LayOutPlanes(codes, rows, cols, bits);
      ByteMatrix matrix;
      matrix.rows = rows;
      matrix.cols = cols;
      matrix.form = planes.form;
      matrix.low = planes.low.data();
      matrix.high = planes.high.data();
      ASSERT_EQ(planes.low.size(), matrix.low_bytes());
      ASSERT_EQ(planes.high.size(), matrix.high_bytes());
      for (uint32_t row = 0; row < rows; ++row) {
        for (uint32_t col = 0; col < cols; ++col) {
          ASSERT_EQ(matrix.Code(row, col), codes[row * cols + col]) << bits << " bits";
        }
      }
    }
  }
}

TEST(CudaWeights, NineBitsTakeNineBits) {
  const BytePlanes planes = LayOutPlanes(std::vector<int16_t>(64 * 64), 64, 64, 9);
  EXPECT_EQ((planes.low.size() + planes.high.size()) * 8, 64u * 64 * 9);
}

// The last tail of the best MicroNet: 8 bytes a row, while tiles would take 36.
TEST(CudaWeights, NarrowRowsTakeSixteenBitsAnEntry) {
  const BytePlanes planes = LayOutPlanes(std::vector<int16_t>(1000 * 4), 1000, 4, 9);
  EXPECT_EQ(planes.form, ByteForm::kNarrow);
  // Rows are padded to whole tiles.
  EXPECT_EQ(planes.low.size() + planes.high.size(), 63u * 16 * 8);
}

TEST(CudaWeights, ATensorIsOnTheDeviceOnceAndLeavesTheFile) {
  CaseBuilder builder("weights", 1);
  const WeightId matrix = builder.Matrix(20, 30, Storage::kPerRow, 9, true);
  const BufferId x = builder.Codes("x", 30, 9, Fill::kRandom);
  const BufferId y = builder.Floats("y", 20, Fill::kZero);
  const OpCase op_case = builder.Finish(MatVec{matrix, std::nullopt, x, y});
  const std::shared_ptr<Device> device = EmulatedDevice();
  const std::unique_ptr<Queue> queue = std::move(device->CreateQueue()).value();
  std::vector<DeviceMemory> memory;
  WeightStore store(op_case.plan, device, *queue, memory);
  ASSERT_TRUE(store.HasIntegers(matrix));
  const ByteMatrix first = store.Integers(matrix).value();
  const uint64_t bytes = store.bytes();
  EXPECT_EQ(store.Integers(matrix).value().low, first.low);
  EXPECT_EQ(store.bytes(), bytes);
  const DecodedCodes expected = DecodeCodes(op_case.plan.weights[matrix]);
  for (uint32_t row = 0; row < 20; ++row) {
    for (uint32_t col = 0; col < 30; ++col) {
      ASSERT_EQ(first.Code(row, col), expected.codes[row * 30 + col]);
    }
    EXPECT_EQ(first.scales[row], expected.scales[row]);
  }
  uint64_t released = 0;
  store.Release([&](WeightId id, MemoryRange range) {
    EXPECT_EQ(id, matrix);
    released += range.size();
  });
  EXPECT_GT(released, 0u);
}

}  // namespace
}  // namespace kinglet::cuda::weights_test

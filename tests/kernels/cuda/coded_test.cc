// Packed codes of a coded table, and lanes that share them.
#include "kernels/cuda/coded.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "format/coded_rows.h"
#include "kernels/cuda/weights.h"
#include "tests/kernels/cuda/lane_runs.h"
#include "tests/support/case_builder.h"

namespace kinglet::cuda::coded_test {
namespace {

// A table whose codes have as many bits as the pool needs.
WeightId AddTable(CaseBuilder& builder, uint32_t rows, uint32_t positions, uint32_t pool,
                  bool hashed) {
  CodingScheme scheme;
  scheme.positions = positions;
  scheme.pools = {pool};
  scheme.codebook = builder.Matrix(pool, 2, Storage::kPerRow, 5);
  const Shape shape = {rows, uint64_t{positions} * 2};
  if (hashed) return builder.Tensor({"hashed", shape, Coded{scheme, HashSeed{7}}});
  std::vector<uint32_t> codes;
  for (uint32_t i = 0; i < rows * positions; ++i) codes.push_back(builder.Below(pool));
  codes.back() = pool - 1;
  return builder.Tensor({"coded", shape, Coded{scheme, codes}});
}

TEST(CudaCoded, PackedCodesAreTheTables) {
  for (const uint32_t rows : {1u, 31u, 32u, 33u, 97u}) {
    for (const uint32_t pool : {1u, 2u, 3u, 32u, 200u, 4000u, 70000u}) {
      for (const bool hashed : {false, true}) {
        CaseBuilder builder("codes", rows + pool);
        const WeightId table = AddTable(builder, rows, 3, pool, hashed);
        CodedSums op{};
        op.table = table;
        op.partial = builder.Floats("partial", uint64_t{pool} * 3, Fill::kZero);
        op.y = builder.Floats("y", rows, Fill::kZero);
        const OpCase op_case = builder.Finish(op);
        const std::shared_ptr<Device> device = EmulatedDevice();
        const std::unique_ptr<Queue> queue = std::move(device->CreateQueue()).value();
        std::vector<DeviceMemory> memory;
        WeightStore weights(op_case.plan, device, *queue, memory);
        const CodeMatrix matrix = weights.Codes(table).value();
        const CodedRows expected(op_case.plan.weights[table]);
        std::vector<uint32_t> codes(3);
        for (uint32_t row = 0; row < rows; ++row) {
          expected.Codes(row, codes.data());
          for (uint32_t j = 0; j < 3; ++j) ASSERT_EQ(matrix.Code(row, j), codes[j]);
        }
        EXPECT_LE(weights.bytes(), 3 * (uint64_t{rows} * matrix.bits / 8 + 8));
      }
    }
  }
}

TEST(CudaCoded, LanesShareTheCodes) {
  CaseBuilder builder("sums", 5);
  CodedSums op{};
  op.table = AddTable(builder, 2051, 5, 19, false);
  op.bias = builder.DenseVector(2051);
  op.partial = builder.Floats("partial", 19 * 5, Fill::kRandom);
  op.y = builder.Floats("y", 2053, Fill::kRandom);
  op.y_offset = 1;
  ExpectLanesSameAsRef(builder.Finish(op), std::vector<TokenAt>(13));
}

}  // namespace
}  // namespace kinglet::cuda::coded_test

#include "kernels/cpu/weights.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "format/encoding.h"
#include "tests/kernels/cpu/vector_fixture.h"
#include "tests/support/case_builder.h"

namespace kinglet::cpu::weights_test {
namespace {

// An OpCase owns tensors and the plan that names them.
OpCase CaseOf(uint64_t rows, uint64_t cols, Storage storage, bool pruned) {
  CaseBuilder builder("", rows * 100 + cols);
  MatVec op;
  op.weight = builder.Matrix(rows, cols, storage, 9, pruned);
  op.x = builder.Floats("x", cols, Fill::kRandom);
  op.y = builder.Floats("y", rows, Fill::kRandom);
  return builder.Finish(op);
}

using WeightStoreTest = VectorFixture;

TEST_F(WeightStoreTest, GivesIntegersAndScalesRowByRow) {
  for (const uint64_t rows : {1u, 16u, 17u, 40u}) {
    for (const uint64_t cols : {1u, 2u, 7u, 32u}) {
      const OpCase op_case = CaseOf(rows, cols, Storage::kPerRow, true);
      WeightStore store(op_case.plan, *functions_);
      const SharedPanels panels = store.Matrix(0);
      EXPECT_EQ(store.Matrix(0), panels);
      store.LayOut();
      const DecodedCodes decoded = DecodeCodes(op_case.plan.weights[0]);
      ASSERT_EQ(panels->bits(), 9);
      ASSERT_EQ(panels->rows(), rows);
      ASSERT_EQ(panels->cols(), cols);
      std::vector<int16_t> row(cols);
      for (uint64_t r = 0; r < rows; ++r) {
        EXPECT_EQ(panels->scale(r), decoded.scales[r]);
        panels->CopyCodes(r, *functions_, row.data());
        for (uint64_t c = 0; c < cols; ++c) EXPECT_EQ(row[c], decoded.codes[r * cols + c]);
      }
    }
  }
}

TEST_F(WeightStoreTest, KeepsFloatsAndDividedIntegersAsFloats) {
  for (const Storage storage : {Storage::kF32, Storage::kF16, Storage::kDivided}) {
    const OpCase op_case = CaseOf(19, 5, storage, false);
    WeightStore store(op_case.plan, *functions_);
    const SharedPanels panels = store.Matrix(0), transposed = store.TransposedFloats(0);
    store.LayOut();
    const std::vector<float> values = DecodedValues(op_case.plan.weights[0]);
    ASSERT_FALSE(panels->integer());
    EXPECT_EQ(transposed->rows(), 5u);
    EXPECT_EQ(transposed->cols(), 19u);
    std::vector<float> row(5), column(19);
    for (uint64_t r = 0; r < 19; ++r) {
      panels->CopyFloats(r, row.data());
      for (uint64_t c = 0; c < 5; ++c) {
        EXPECT_EQ(row[c], values[r * 5 + c]);
        transposed->CopyFloats(c, column.data());
        EXPECT_EQ(column[r], values[r * 5 + c]);
      }
    }
  }
}

// The biases that a product adds, by their definition.
std::vector<float> Values(const Biases& biases, size_t count) {
  std::vector<float> values;
  if (biases.values != nullptr) values.assign(biases.values->begin(), biases.values->end());
  for (const int16_t integer : biases.integers) {
    const auto exact = static_cast<float>(integer);
    values.push_back(std::fma(exact, biases.scale, exact * biases.rest));
  }
  EXPECT_EQ(values.size(), (count + 15) / 16 * 16);
  for (size_t i = count; i < values.size(); ++i) EXPECT_EQ(values[i], 0.0f);
  values.resize(count);
  return values;
}

TEST_F(WeightStoreTest, BiasesAreIntegersOnlyWhereThoseGiveTheSameFloats) {
  struct {
    float divisor;
    int bits;
    ScaleRule rule;
    bool integers;
  } const cases[] = {{255.0f, 9, ScaleRule::kDividePerTensor, true},
                     {3.7f, 9, ScaleRule::kDividePerTensor, true},
                     {1e-30f, 16, ScaleRule::kDividePerTensor, true},
                     {127.3f, 2, ScaleRule::kDividePerTensor, true},
                     {2e38f, 9, ScaleRule::kDividePerTensor, false},  // the scale is denormal
                     {0.01f, 9, ScaleRule::kMultiplyPerTensor, false}};
  for (const auto& one : cases) {
    Quantised quantised;
    quantised.bits = one.bits;
    quantised.rule = one.rule;
    quantised.scales = {one.divisor};
    const int half = 1 << (one.bits - 1);
    for (int i = 0; i < 35; ++i) {
      quantised.codes.push_back(static_cast<int16_t>(i % 3 == 0 ? 0 : i * 917 % (2 * half) - half));
    }
    for (const bool pruned : {false, true}) {
      CaseBuilder builder("", 1);
      MatVec op;
      op.weight = builder.Matrix(35, 4, Storage::kPerRow, 9);
      op.bias = builder.Tensor({"bias", {35}, quantised, pruned});
      op.x = builder.Floats("x", 4, Fill::kRandom);
      op.y = builder.Floats("y", 35, Fill::kRandom);
      const OpCase op_case = builder.Finish(op);
      WeightStore store(op_case.plan, *functions_);
      const SharedBiases packed = store.BiasesOf(*op.bias, true),
                         floats = store.BiasesOf(*op.bias, false);
      EXPECT_EQ(store.BiasesOf(*op.bias, true), packed);
      EXPECT_EQ(packed->integers.empty(), !one.integers) << one.divisor;
      EXPECT_TRUE(floats->integers.empty());
      const std::vector<float> values = DecodedValues(op_case.plan.weights[*op.bias]);
      EXPECT_EQ(Values(*packed, 35), values) << one.divisor;
      EXPECT_EQ(Values(*floats, 35), values);
      const float largest = std::abs(
          *std::ranges::max_element(values, {}, [](float value) { return std::abs(value); }));
      EXPECT_EQ(packed->largest, largest);
      EXPECT_EQ(floats->largest, largest);
      EXPECT_EQ(packed->Memory().size(), 48 * (one.integers ? sizeof(int16_t) : sizeof(float)));
    }
  }
}

TEST_F(WeightStoreTest, RepeatsAScaleOfTheWholeTensor) {
  const OpCase op_case = CaseOf(18, 3, Storage::kPerTensor, false);
  WeightStore store(op_case.plan, *functions_);
  const SharedPanels panels = store.Matrix(0);
  store.LayOut();
  const float scale = DecodeCodes(op_case.plan.weights[0]).scales.at(0);
  for (uint64_t row = 0; row < 18; ++row) EXPECT_EQ(panels->scale(row), scale);
}

TEST_F(WeightStoreTest, PadsVectorsToWholePanels) {
  CaseBuilder builder("", 3);
  LayerNorm op;
  op.gain = builder.DenseVector(17);
  op.bias = builder.DividedVector(16, 9);
  op.x = builder.Floats("x", 17, Fill::kRandom);
  op.y = builder.Floats("y", 17, Fill::kRandom);
  const OpCase op_case = builder.Finish(op);
  WeightStore store(op_case.plan, *functions_);
  const SharedVector gain = store.Vector(0), bias = store.Vector(1);
  ASSERT_EQ(gain->size(), 32u);
  ASSERT_EQ(bias->size(), 16u);
  const std::vector<float> values = DecodedValues(op_case.plan.weights[0]);
  for (size_t i = 0; i < 32; ++i) EXPECT_EQ((*gain)[i], i < 17 ? values[i] : 0.0f);
}

// A ReleaseBytes that records which bytes were released, chunk by chunk.
struct Released {
  std::vector<MemoryRange> chunks;
  ReleaseBytes Function() {
    return [this](WeightId, MemoryRange bytes) { chunks.push_back(bytes); };
  }
  uint64_t bytes() const {
    uint64_t total = 0;
    for (const MemoryRange& chunk : chunks) total += chunk.size();
    return total;
  }
};

TEST_F(WeightStoreTest, GivesBackWhatItHasLaidOutUnlessAKernelReadsIt) {
  // Rows of 4,000 columns at 9 bits: 1,000 of them are more than one chunk.
  for (const bool pruned : {false, true}) {
    const OpCase op_case = CaseOf(1000, 4000, Storage::kPerRow, pruned);
    Released released;
    WeightStore store(op_case.plan, *functions_, {released.Function()});
    const SharedPanels panels = store.Matrix(0);
    EXPECT_TRUE(released.chunks.empty());
    store.LayOut();
    const uint64_t stored = op_case.tensors->bytes();
    EXPECT_LE(released.bytes(), stored + 3 * released.chunks.size());
    EXPECT_GE(released.bytes() + 3 * released.chunks.size(), stored);

    Released kept;
    WeightStore other(op_case.plan, *functions_, {kept.Function()});
    other.Matrix(0);
    other.Keep(0);
    other.LayOut();
    EXPECT_TRUE(kept.chunks.empty());
  }
}

TEST_F(WeightStoreTest, GivesBackWhatANodeHasConsumedUnlessAKernelReadsIt) {
  const OpCase op_case = CaseOf(100, 400, Storage::kPerRow, false);
  Released released;
  WeightStore store(op_case.plan, *functions_, {released.Function()});
  store.Consume(0);
  EXPECT_TRUE(released.chunks.empty());
  store.LayOut();
  EXPECT_EQ(released.bytes(), op_case.tensors->bytes());

  for (const bool laid_out : {false, true}) {
    Released once;
    WeightStore other(op_case.plan, *functions_, {once.Function()});
    other.Consume(0);
    if (laid_out) other.Matrix(0);  // laying out gives it back
    if (!laid_out) other.Keep(0);
    other.LayOut();
    EXPECT_EQ(once.chunks.empty(), !laid_out);
    EXPECT_LE(once.bytes(), op_case.tensors->bytes() + 3 * once.chunks.size());
  }
}

// A byte that is released before its last read gives a wrong entry.
TEST_F(WeightStoreTest, ReadsNothingThatItHasGivenBack) {
  for (const Storage storage : {Storage::kF32, Storage::kF16, Storage::kPerRow}) {
    for (const bool pruned : {false, true}) {
      const OpCase op_case = CaseOf(2100, 1001, storage, pruned);
      WeightStore whole(op_case.plan, *functions_);
      const SharedPanels expected = whole.Matrix(0);
      whole.LayOut();
      const auto release = [](WeightId, MemoryRange bytes) {
        std::fill_n(const_cast<std::byte*>(bytes.data()), bytes.size(), std::byte{0xFF});
      };
      WeightStore store(op_case.plan, *functions_, {release});
      // Pools that do not begin at panels, and that overlap.
      const SharedPanels first = store.MatrixRows(0, 0, 1005),
                         rest = store.MatrixRows(0, 997, 1103);
      store.LayOut();
      std::vector<int16_t> codes(1001), wanted_codes(1001);
      std::vector<float> floats(1001), wanted_floats(1001);
      for (uint64_t row = 0; row < 2100; ++row) {
        const SharedPanels& panels = row < 1005 ? first : rest;
        const uint64_t at = row < 1005 ? row : row - 997;
        if (expected->integer()) {
          expected->CopyCodes(row, *functions_, wanted_codes.data());
          panels->CopyCodes(at, *functions_, codes.data());
          ASSERT_EQ(codes, wanted_codes) << row;
          ASSERT_EQ(panels->scale(at), expected->scale(row));
        } else {
          expected->CopyFloats(row, wanted_floats.data());
          panels->CopyFloats(at, floats.data());
          ASSERT_EQ(floats, wanted_floats) << row;
        }
      }
    }
  }
}

}  // namespace
}  // namespace kinglet::cpu::weights_test

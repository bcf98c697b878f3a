#include "kernels/ref/weights.h"

#include <gtest/gtest.h>

#include "format/model_file.h"
#include "format/writer.h"
#include "tests/support/model_builder.h"

namespace kinglet::ref::weights_test {
namespace {

TEST(WeightStore, DecodesEachTensorOnceAndExactly) {
  TinyOptions options;
  options.quantised = true;
  options.pruned = true;
  const ModelDraft draft = TinyMicronet(options);
  const auto file = *ModelFile::FromBytes(*SerialiseModel(draft));
  Plan plan;
  plan.weights = file->tensors();
  WeightStore store(plan);
  size_t integers = 0;
  for (TensorId id = 0; id < draft.tensors.size(); ++id) {
    const SharedWeights weights = store.Get(id);
    EXPECT_EQ(weights, store.Get(id));
    EXPECT_EQ(weights->values, DecodedValues(draft.tensors[id])) << draft.tensors[id].name;
    EXPECT_EQ(weights->rows * weights->cols, weights->values.size());
    if (!weights->integer) continue;
    ++integers;
    EXPECT_EQ(weights->scales.size(), weights->rows);
    for (uint64_t row = 0; row < weights->rows; ++row) {
      for (uint64_t col = 0; col < weights->cols; ++col) {
        EXPECT_EQ(
            static_cast<float>(weights->codes[row * weights->cols + col]) * weights->scales[row],
            weights->Value(row, col));
      }
    }
  }
  EXPECT_GT(integers, 0u);
}

TEST(WeightStore, DividedBiasesAreNotIntegerOperands) {
  TinyOptions options;
  options.bits = 9;
  const auto file = *ModelFile::FromBytes(*SerialiseModel(TinyMicronet(options)));
  Plan plan;
  plan.weights = file->tensors();
  WeightStore store(plan);
  for (TensorId id = 0; id < plan.weights.size(); ++id) {
    if (plan.weights[id].shape.size() == 1) {
      EXPECT_FALSE(store.Get(id)->integer) << plan.weights[id].name;
    }
  }
}

TEST(Weights, MemoryIsThatOfIntegersAndScalesOrOfFloats) {
  Weights weights;
  weights.rows = 3;
  weights.cols = 5;
  weights.values.resize(15);
  weights.integer = true;
  weights.codes.resize(15);
  weights.scales.resize(3);
  const std::vector<MemoryRange> floats = weights.Memory(false);
  ASSERT_EQ(floats.size(), 1u);
  EXPECT_EQ(floats[0].size(), 15u * 4);
  const std::vector<MemoryRange> rows = weights.Memory(true, 1, 3);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].size(), 2u * 5 * 2);
  EXPECT_EQ(rows[0].data(), std::as_bytes(std::span(weights.codes)).data() + 5 * 2);
  EXPECT_EQ(rows[1].size(), 2u * 4);
  EXPECT_EQ(rows[1].data(), std::as_bytes(std::span(weights.scales)).data() + 4);
}

}  // namespace
}  // namespace kinglet::ref::weights_test

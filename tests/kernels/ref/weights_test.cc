#include "kernels/ref/weights.h"

#include <gtest/gtest.h>

#include "format/model_file.h"
#include "format/writer.h"
#include "tests/support/model_builder.h"

namespace kinglet::ref {
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

}  // namespace
}  // namespace kinglet::ref

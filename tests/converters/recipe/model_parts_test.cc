#include "converters/recipe/model_parts.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/converters/recipe/recipe_source.h"

namespace kinglet::model_parts_test {
namespace {

using Use = ModelParts::Use;

CheckpointTensors Weights() {
  return {FloatTensor("matrix", {2, 3}, {1, 2, 3, 4, 5, 6}), FloatTensor("vector", {3}, {7, 8, 9}),
          FloatTensor("book", {4, 2}, {0, 1, 2, 3, 4, 5, 6, 7})};
}
TensorRef Whole(const std::string& name) { return {name, {}, {}, false, false}; }

TEST(ModelParts, ATensorIsStoredOnceForEachShapeItIsReadAs) {
  const CheckpointTensors weights = Weights();
  ModelParts parts(weights, 1);
  const TensorId first = *parts.AddRef("a", Whole("matrix"), Use::kMatrix);
  EXPECT_EQ(*parts.AddRef("b", Whole("matrix"), Use::kMatrix), first);
  const TensorId reshaped = *parts.AddRefAs("c", Whole("matrix"), {3, 2}, Use::kKept);
  EXPECT_NE(reshaped, first);
  EXPECT_EQ(*parts.AddRefAs("d", Whole("matrix"), {3, 2}, Use::kKept), reshaped);
  TensorRef turned = Whole("matrix");
  turned.transpose = true;
  EXPECT_NE(*parts.AddRef("e", turned, Use::kMatrix), reshaped);
  const TensorId vector = *parts.AddRef("f", Whole("vector"), Use::kVector);
  EXPECT_EQ(*parts.AddOptionalRef("g", std::nullopt, Use::kVector), std::nullopt);

  LoadedModel model = parts.Finish();
  ASSERT_TRUE(ReadTensors(model).ok());
  EXPECT_EQ(DecodedValues(model.draft.tensors[reshaped]), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(DecodedValues(model.draft.tensors[reshaped + 1]),
            (std::vector<float>{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(model.prunable, (std::vector<TensorId>{first, reshaped + 1}));
  EXPECT_EQ(model.quantisable, (std::vector<TensorId>{first, reshaped + 1, vector}));
}

TEST(ModelParts, ACodedTableLeavesPassesItsCodebook) {
  const CheckpointTensors weights = Weights();
  ModelParts parts(weights, 1);
  const auto added = parts.AddTable(
      "t", TableOf(R"({"hashed": {"combine": "concatenate", "pools": "one", "codebook": "book",
                         "words": 5, "positions": 1, "seed": 2}})"),
      /*folded=*/false);
  ASSERT_TRUE(added.ok()) << added.status().message();
  EXPECT_EQ(added->words, 5u);
  EXPECT_EQ(parts.ShapeOf(added->id), (Shape{5, 2}));
  const LoadedModel model = parts.Finish();
  EXPECT_EQ(model.draft.tensors[0].name, "t.codebook");
  EXPECT_EQ(model.quantisable, std::vector<TensorId>{0});
  EXPECT_EQ(std::get<Coded>(model.draft.tensors[1].values).scheme.codebook, 0u);
}

TEST(ModelParts, Refusals) {
  const CheckpointTensors weights = Weights();
  ModelParts parts(weights, 1);
  EXPECT_EQ(parts.AddRef("a", Whole("vector"), Use::kMatrix).status().message(),
            "recipe: a: expected a matrix, found [3] of 'vector'");
  EXPECT_EQ(parts.AddRefAs("a", Whole("vector"), {2, 2}, Use::kKept).status().message(),
            "recipe: a: expected [2, 2], found [3] of 'vector'");
  EXPECT_FALSE(parts.AddRef("a", Whole("none"), Use::kMatrix).ok());
  EXPECT_FALSE(ModelParts::CheckWords("a", uint64_t{1} << 32).ok());
  EXPECT_TRUE(ModelParts::CheckWords("a", 0).ok());
}

}  // namespace
}  // namespace kinglet::model_parts_test

#include "converters/recipe/project_table.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "converters/recipe/recipe_model.h"
#include "format/model_file.h"
#include "tests/converters/recipe/recipe_source.h"
#include "tests/converters/with_values.h"

namespace kinglet::project_table_test {
namespace {

// 9 words whose table the embedding and the softmax share; the embedding's width is 4, or 6 with a
// projection.
LoadedModel Tied(const std::string& embedding, const std::string& softmax, uint64_t width) {
  const CheckpointTensors weights = {RandomTensor("table", {9, 4}), RandomTensor("out", {6, 4}),
                                     RandomTensor("in", {4, 4}), RandomTensor("ih", {16, width}),
                                     RandomTensor("hh", {16, 4})};
  auto model = WithValues(ModelFromRecipe(
      RecipeOf(R"({"embedding": {"scale": 1, "table": "table")" + embedding +
               R"(}, "recurrent": {"cell": "lstm", "gates": "ifgo", "forget_bias": 0,
      "layers": [{"input_weight": "ih", "recurrent_weight": "hh"}]},
                   "softmax": {"table": "table")" +
               softmax + R"(}, "unused": ["*"]})"),
      weights, 1));
  EXPECT_TRUE(model.ok()) << model.status().message();
  return *std::move(model);
}

// Entry [i, j] of A B with B [inner, columns], or of A B^T with B [columns, inner].
double Entry(const EncodedTensor& a, const EncodedTensor& b, bool transposed, size_t i, size_t j) {
  const std::vector<float> left = DecodedValues(a), right = DecodedValues(b);
  const size_t inner = Cols(a.shape), columns = Cols(b.shape);
  double sum = 0;
  for (size_t k = 0; k < inner; ++k) {
    sum += double{left[i * inner + k]} * right[transposed ? j * columns + k : k * columns + j];
  }
  return sum;
}

// Rank 4 of 4 is exact: table times projection stays the same.
TEST(ProjectTable, FactorsOfATiedTableServeBothPlaces) {
  const struct {
    const char *embedding, *softmax;
    uint64_t width, bytes_before, bytes_after;
  } cases[] = {
      {"", "", 4, 144, 144 + 2 * 64},
      {R"(, "projection": "out")", "", 6, 144 + 96, 144 + 96 + 64},
      {"", R"(, "projection": {"tensor": "in", "transpose": false})", 4, 144 + 64, 144 + 2 * 64},
      {R"(, "projection": "out")", R"(, "projection": {"tensor": "in", "transpose": false})", 6,
       304, 304}};
  for (const auto& [embedding, softmax, width, bytes_before, bytes_after] : cases) {
    const LoadedModel before = Tied(embedding, softmax, width);
    LoadedModel after = before;
    const EncodedTensor& table = before.draft.tensors[0];
    const std::vector<float> values = DecodedValues(table);
    const auto factors = FactoriseToRank(values, table.shape, 4, 1);
    ASSERT_TRUE(factors.ok());
    Reconstruction found = Compare(values, table.shape, *factors);
    const Status status = ProjectTable(0, *factors, "pass 0", after, found);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(found.bytes_before, bytes_before);
    EXPECT_EQ(found.bytes_after, bytes_after);
    EXPECT_TRUE(SerialiseModel(after.draft).ok());

    const auto& old_bin = FindBlock<AdaptiveEmbedding>(before.draft.description)->bins[0];
    const auto& new_bin = FindBlock<AdaptiveEmbedding>(after.draft.description)->bins[0];
    const auto* old_softmax = FindBlock<AdaptiveSoftmax>(before.draft.description);
    const auto* new_softmax = FindBlock<AdaptiveSoftmax>(after.draft.description);
    ASSERT_TRUE(new_bin.projection && new_softmax->head_projection);
    const EncodedTensor& thin = after.draft.tensors[0];
    for (size_t i = 0; i < 9; ++i) {
      for (size_t j = 0; j < width; ++j) {
        const double expected =
            old_bin.projection ? Entry(table, before.draft.tensors[*old_bin.projection], true, i, j)
                               : values[i * 4 + j];
        EXPECT_NEAR(Entry(thin, after.draft.tensors[*new_bin.projection], true, i, j), expected,
                    1e-6);
      }
      for (size_t j = 0; j < 4; ++j) {
        const double expected =
            old_softmax->head_projection
                ? Entry(table, before.draft.tensors[*old_softmax->head_projection], false, i, j)
                : values[i * 4 + j];
        EXPECT_NEAR(Entry(thin, after.draft.tensors[*new_softmax->head_projection], false, i, j),
                    expected, 1e-6);
      }
    }
  }
}

TEST(ProjectTable, RefusesWhatIsNoTable) {
  LoadedModel model = Tied("", "", 4);
  const EncodedTensor& weight = model.draft.tensors[1];
  const auto factors = FactoriseToRank(DecodedValues(weight), weight.shape, 1, 1);
  ASSERT_TRUE(factors.ok());
  Reconstruction found;
  EXPECT_EQ(ProjectTable(1, *factors, "pass 3", model, found).message(),
            "recipe: pass 3, recurrent.0.input_weight: expected a table of the embedding or the "
            "softmax, found a tensor of another kind");
}

}  // namespace
}  // namespace kinglet::project_table_test

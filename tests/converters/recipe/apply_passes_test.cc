#include "converters/recipe/apply_passes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "converters/recipe/recipe_model.h"
#include "format/model_file.h"
#include "tests/converters/recipe/recipe_source.h"
#include "tests/converters/synthetic.h"
#include "tests/converters/with_values.h"

namespace kinglet::apply_passes_test {
namespace {

// 12 words; an embedding with a projection, and a softmax of a head and a tail with a projection.
LoadedModel Model() {
  const CheckpointTensors weights = {RandomTensor("emb", {12, 4}),
                                     RandomTensor("widen", {6, 4}),
                                     RandomTensor("lstm.weight_ih_l0", {12, 6}),
                                     RandomTensor("lstm.weight_hh_l0", {12, 3}),
                                     RandomTensor("lstm.bias_ih_l0", {12}),
                                     RandomTensor("lstm.bias_hh_l0", {12}),
                                     RandomTensor("head", {5, 3}),
                                     RandomTensor("clusters", {1, 3}),
                                     RandomTensor("narrow", {2, 3}),
                                     RandomTensor("tail", {7, 2})};
  auto model = WithValues(
      ModelFromRecipe(RecipeOf(R"({"embedding": {"scale": 1, "table": "emb", "projection": "widen"},
      "recurrent": {"cell": "lstm", "torch": "lstm", "layers": 1},
      "softmax": {"head": {"table": "head"}, "clusters": {"weight": "clusters", "order": "forward"},
                  "tails": [{"table": "tail", "projection": "narrow"}]}})"),
                      weights, 1));
  EXPECT_TRUE(model.ok()) << model.status().message();
  return *std::move(model);
}

const std::string kFolder = ".";

Status Apply(const std::string& json, LoadedModel& model, const std::string& folder = "",
             const std::function<void(const std::string&)>& progress = {}) {
  std::vector<PassRecipe> passes;
  const RecipeNode list = NodeOf(json);
  const std::vector<RecipeNode> items = *list.Items();
  for (const RecipeNode& item : items) {
    auto pass = ParsePass(item);
    if (!pass.ok()) return pass.status();
    passes.push_back(*std::move(pass));
  }
  return ApplyRecipePasses(passes, {{folder}, 2, progress}, model);
}

const EncodedTensor& Named(const LoadedModel& model, const std::string& name) {
  for (const EncodedTensor& tensor : model.draft.tensors) {
    if (tensor.name == name) return tensor;
  }
  ADD_FAILURE() << name;
  return model.draft.tensors[0];
}
std::vector<float> Values(const LoadedModel& model, const std::string& name) {
  return DecodedValues(Named(model, name));
}

// [rows, inner] times [inner, columns].
std::vector<double> Product(const std::vector<float>& a, const std::vector<float>& b,
                            size_t inner) {
  const size_t rows = a.size() / inner, columns = b.size() / inner;
  std::vector<double> product(rows * columns);
  for (size_t i = 0; i < product.size(); ++i) {
    for (size_t k = 0; k < inner; ++k) {
      product[i] += double{a[i / columns * inner + k]} * b[k * columns + i % columns];
    }
  }
  return product;
}
std::vector<float> Transposed(const std::vector<float>& values, size_t columns) {
  std::vector<float> transposed;
  for (size_t c = 0; c < columns; ++c) {
    for (size_t i = c; i < values.size(); i += columns) transposed.push_back(values[i]);
  }
  return transposed;
}
void ExpectNear(const std::vector<double>& found, const std::vector<double>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-6);
}

TEST(RecipePasses, PruneTheSmallestOfTheTensorsThatAreNamed) {
  LoadedModel model = Model();
  const std::vector<float> before = Values(model, "embedding.table");
  ASSERT_TRUE(Apply(R"([{"pass": "prune", "fraction": 0.4, "tensors": ["emb*"]}])", model).ok());
  std::vector<float> magnitudes = before;
  for (float& value : magnitudes) value = std::fabs(value);
  std::sort(magnitudes.begin(), magnitudes.end());
  std::vector<float> expected = before;
  for (float& value : expected) {
    if (std::fabs(value) < magnitudes[19]) value = 0;  // floor(0.4 * 48)
  }
  EXPECT_EQ(Values(model, "embedding.table"), expected);
  EXPECT_TRUE(Named(model, "embedding.projection").pruned);
  EXPECT_FALSE(Named(model, "recurrent.0.input_weight").pruned);
  ASSERT_EQ(model.notes.size(), 2u);
  EXPECT_TRUE(model.notes[0].starts_with("embedding.table: pruned, relative error "));
}

TEST(RecipePasses, PruneTakesAFractionForEachTensor) {
  LoadedModel model = Model();
  const auto zeros = [&model](const std::string& name) {
    const std::vector<float> values = Values(model, name);
    return std::count(values.begin(), values.end(), 0.0F);
  };
  const std::string fractions =
      R"({"embedding.table": 0.75, "embedding.*": 0.5, "recurrent.0.input_weight": 0.25})";
  const size_t entries = Values(model, "recurrent.0.input_weight").size();
  ASSERT_TRUE(Apply(R"([{"pass": "prune", "fractions": )" + fractions + "}]", model).ok());
  // Patterns come in the order of their names; the first that fits counts.
  EXPECT_EQ(zeros("embedding.table"), 24);
  EXPECT_EQ(zeros("embedding.projection"), Values(model, "embedding.projection").size() / 2);
  EXPECT_EQ(zeros("recurrent.0.input_weight"), entries / 4);
  const std::string name = "apply_passes_fractions.json", path = testing::TempDir() + name;
  const auto apply = [&](const std::string& file) {
    return Apply(R"([{"pass": "prune", "fractions": ")" + file + "\"}]", model, testing::TempDir());
  };
  std::ofstream(path) << R"({"embedding.table": 0.9})";
  ASSERT_TRUE(apply(name).ok()) << apply(name).message();
  EXPECT_EQ(zeros("embedding.table"), 43);
  std::ofstream(path) << R"({"embedding.table": 1})";
  EXPECT_NE(apply(name).message().find("expected at least 0, below 1"), std::string::npos);
  EXPECT_TRUE(apply(path).message().starts_with("recipe: /passes/0/fractions: expected the name"))
      << apply(path).message();
}

TEST(RecipePasses, QuantiseWithoutNamesTakesEverything) {
  LoadedModel model = Model();
  const std::vector<float> before = Values(model, "softmax.head.table");
  ASSERT_TRUE(Apply(R"([{"pass": "quantise", "bits": 9}])", model).ok());
  for (const EncodedTensor& tensor : model.draft.tensors) {
    EXPECT_TRUE(std::holds_alternative<Quantised>(tensor.values)) << tensor.name;
  }
  const std::vector<float> after = Values(model, "softmax.head.table");
  for (size_t row = 0; row < 5; ++row) {
    float largest = 0;
    for (size_t i = 0; i < 3; ++i) largest = std::max(largest, std::fabs(before[row * 3 + i]));
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_NEAR(after[row * 3 + i], before[row * 3 + i], largest / 255 * 0.51);
    }
  }
  // One note for all tensors: their bytes together, and the tensor with the largest error.
  ASSERT_EQ(model.notes.size(), 1u);
  uint64_t bytes = 0;
  for (const EncodedTensor& tensor : model.draft.tensors) bytes += 4 * Count(tensor.shape);
  EXPECT_TRUE(model.notes[0].starts_with(std::to_string(model.draft.tensors.size()) +
                                         " tensors: 9 bits, relative error up to "))
      << model.notes[0];
  EXPECT_NE(model.notes[0].find("), " + std::to_string(bytes) + " -> "), std::string::npos)
      << model.notes[0];
}

TEST(RecipePasses, ScalesAreOfRowsOrOfTheTensor) {
  LoadedModel model = Model();
  ASSERT_TRUE(Apply(R"([{"pass": "quantise", "bits": 5, "tensors": ["softmax.head.table"]},
      {"pass": "quantise", "bits": 5, "scale": "tensor", "tensors": ["*tails*table"]}])",
                    model)
                  .ok());
  EXPECT_EQ(std::get<Quantised>(Named(model, "softmax.head.table").values).scales.size(), 5u);
  EXPECT_EQ(std::get<Quantised>(Named(model, "softmax.tails.0.table").values).scales.size(), 1u);
}

TEST(RecipePasses, HalvesAreTheNearestFloat16) {
  LoadedModel model = Model();
  const std::vector<float> before = Values(model, "softmax.head.table");
  ASSERT_TRUE(Apply(R"([{"pass": "half", "tensors": ["softmax.head.table"]}])", model).ok());
  const std::vector<float> after = Values(model, "softmax.head.table");
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_NEAR(after[i], before[i], std::fabs(before[i]) / 2048);
  }
  std::get<DenseF32>(model.draft.tensors[0].values).values[3] = 70000;
  EXPECT_EQ(
      Apply(R"([{"pass": "half", "tensors": ["embedding.table"]}])", model).message(),
      "recipe: pass 0, embedding.table: expected values up to 65504, the largest float16, found "
      "larger ones");
}

// With one sub-vector for every part of every row, the codes are exact.
TEST(RecipePasses, CodesWithAsManySubVectorsAsRowsLoseNothing) {
  LoadedModel model = Model();
  const std::vector<float> before = Values(model, "embedding.table");
  ASSERT_TRUE(Apply(R"([{"pass": "code", "tensors": ["embedding.table"], "positions": 2,
                         "sub_vectors": 24},
                        {"pass": "quantise", "bits": 12,
                         "tensors": ["embedding.table.codebook"]}])",
                    model)
                  .ok());
  const auto& coded = std::get<Coded>(Named(model, "embedding.table").values);
  const auto& codes = std::get<std::vector<uint32_t>>(coded.codes);
  const std::vector<float> book = Values(model, "embedding.table.codebook");
  ASSERT_EQ(coded.scheme.pools, (std::vector<uint32_t>{12, 12}));
  for (size_t i = 0; i < before.size(); ++i) {
    const size_t part = i / 2, position = part % 2;
    EXPECT_NEAR(book[(codes[part] + 12 * position) * 2 + i % 2], before[i], 1e-3);
  }
  EXPECT_TRUE(model.notes[0].starts_with("embedding.table: 2 codes a row, 24 sub-vectors, "));
  EXPECT_TRUE(SerialiseModel(model.draft).ok());
  // The codebook replaces the table among the quantisable tensors.
  LoadedModel again = Model();
  ASSERT_TRUE(Apply(R"([{"pass": "code", "tensors": ["embedding.table"], "positions": 2,
                         "sub_vectors": 4, "mapping": "hashed", "seed": 5, "pools": "one"},
                        {"pass": "quantise", "bits": 9}])",
                    again)
                  .ok());
  EXPECT_TRUE(std::holds_alternative<Quantised>(Named(again, "embedding.table.codebook").values));
  EXPECT_EQ(std::get<HashSeed>(std::get<Coded>(Named(again, "embedding.table").values).codes).value,
            5u);
}

// Rows of 4 values as sums of 2 vectors of 4 values; with a vector for every row they are exact.
TEST(RecipePasses, CodesOfSumsStandForWholeRows) {
  LoadedModel model = Model();
  const std::vector<float> before = Values(model, "embedding.table");
  ASSERT_TRUE(Apply(R"([{"pass": "code", "tensors": ["embedding.table"], "combine": "sum",
                         "positions": 2, "sub_vectors": 24, "sweeps": 1},
                        {"pass": "quantise", "bits": 12,
                         "tensors": ["embedding.table.codebook"]}])",
                    model)
                  .ok());
  const auto& coded = std::get<Coded>(Named(model, "embedding.table").values);
  EXPECT_EQ(coded.scheme.combine, Combine::kSum);
  EXPECT_EQ(coded.scheme.pools, (std::vector<uint32_t>{12, 12}));
  EXPECT_EQ(Named(model, "embedding.table.codebook").shape, (Shape{24, 4}));
  const auto& codes = std::get<std::vector<uint32_t>>(coded.codes);
  const std::vector<float> book = Values(model, "embedding.table.codebook");
  for (size_t i = 0; i < before.size(); ++i) {
    const size_t row = i / 4;
    EXPECT_NEAR(book[codes[2 * row] * 4 + i % 4] + book[(12 + codes[2 * row + 1]) * 4 + i % 4],
                before[i], 2e-3);
  }
  EXPECT_TRUE(SerialiseModel(model.draft).ok());
}

TEST(RecipePasses, ClusteringReportsItsProgress) {
  LoadedModel model = Model();
  std::vector<std::string> reports;
  ASSERT_TRUE(Apply(R"([{"pass": "code", "tensors": ["embedding.table"], "positions": 2,
                         "sub_vectors": 6, "restarts": 2}])",
                    model, "", [&](const std::string& text) { reports.push_back(text); })
                  .ok());
  ASSERT_GE(reports.size(), 4u);
  EXPECT_TRUE(reports.front().starts_with(
      "pass 0, embedding.table: pool 1 of 2, restart 1 of 2, iteration 1 of 25, squared error "));
  EXPECT_TRUE(reports.back().starts_with("pass 0, embedding.table: pool 2 of 2, restart 2 of 2, "));
  reports.clear();
  ASSERT_TRUE(Apply(R"([{"pass": "code", "tensors": ["softmax.tails.0.table"], "positions": 2,
                         "sub_vectors": 4, "combine": "sum"}])",
                    model, "", [&](const std::string& text) { reports.push_back(text); })
                  .ok());
  ASSERT_FALSE(reports.empty());
  EXPECT_TRUE(
      reports.back().starts_with("pass 0, softmax.tails.0.table: pool 2 of 2, restart 1 of 1"))
      << reports.back();
}

TEST(RecipePasses, LowRankOfFullRankIsTheSameMapping) {
  LoadedModel model = Model();
  const auto embedding = Product(Values(model, "embedding.table"),
                                 Transposed(Values(model, "embedding.projection"), 4), 4);
  const auto tail = Product(Values(model, "softmax.tails.0.table"),
                            Values(model, "softmax.tails.0.projection"), 2);
  ASSERT_TRUE(Apply(R"([{"pass": "low_rank", "tensors": ["embedding.table"], "rank": 4},
                        {"pass": "low_rank", "tensors": ["*tails*table"], "error": 0}])",
                    model)
                  .ok());
  ExpectNear(Product(Values(model, "embedding.table"),
                     Transposed(Values(model, "embedding.projection"), 4), 4),
             embedding);
  ExpectNear(Product(Values(model, "softmax.tails.0.table"),
                     Values(model, "softmax.tails.0.projection"), 2),
             tail);
  EXPECT_EQ(model.notes.size(), 2u);
  EXPECT_TRUE(model.notes[0].starts_with("embedding.table: rank 4, relative error "));

  ASSERT_TRUE(
      Apply(R"([{"pass": "low_rank", "tensors": ["embedding.table"], "rank": 2}])", model).ok());
  EXPECT_EQ(Named(model, "embedding.table").shape, (Shape{12, 2}));
  EXPECT_EQ(Named(model, "embedding.projection").shape, (Shape{6, 2}));
  EXPECT_TRUE(SerialiseModel(model.draft).ok());
}

TEST(RecipePasses, LowRankGivesATableItsProjection) {
  LoadedModel model = Model();
  auto* embedding = FindBlock<AdaptiveEmbedding>(model.draft.description);
  const_cast<AdaptiveEmbedding*>(embedding)->bins[0].projection.reset();
  const std::vector<float> before = Values(model, "embedding.table");
  ASSERT_TRUE(
      Apply(R"([{"pass": "low_rank", "tensors": ["embedding.table"], "rank": 4}])", model).ok());
  ASSERT_TRUE(embedding->bins[0].projection);
  const EncodedTensor& projection = model.draft.tensors[*embedding->bins[0].projection];
  ExpectNear(Product(Values(model, "embedding.table"), Transposed(DecodedValues(projection), 4), 4),
             {before.begin(), before.end()});
}

TEST(RecipePasses, RefusalsNameThePassAndTheTensor) {
  const std::pair<std::string, std::string> cases[] = {
      {R"({})", ", /0: expected \"pass\", found none"},
      {R"({"pass": "distil"})", ", /0/pass: expected \"prune\", \"quantise\""},
      {R"({"pass": "prune"})", ", /0: expected \"fraction\", found none"},
      {R"({"pass": "prune", "fraction": 0, "fractions": {"x": 0}})",
       R"(/0: expected "fractions" or "fraction", found both)"},
      {R"({"pass": "prune", "fractions": {}})", "/0/fractions: expected a fraction for each"},
      {R"({"pass": "prune", "fractions": {"x": 1}})", "/0/fractions/x: expected at least 0"},
      {R"({"pass": "prune", "fraction": 1})", "/0/fraction: expected at least 0, below 1, found 1"},
      {R"({"pass": "prune", "fraction": -0.1})", "/0/fraction: expected at least 0, below 1"},
      {R"({"pass": "prune", "fraction": 0, "bits": 9})", "/0: expected a key \"pass\""},
      {R"({"pass": "prune", "fraction": 0, "tensors": "x"})", "/0/tensors: expected an array"},
      {R"({"pass": "prune", "fraction": 0, "tensors": [1]})", "/0/tensors/0: expected a text"},
      {R"({"pass": "prune", "fraction": 0, "tensors": ["x*"]})",
       "recipe: pass 0, prune: expected a tensor whose name fits 'x*', found none"},
      {R"({"pass": "quantise", "bits": 1})", "/0/bits: expected 2 to 16, found 1"},
      {R"({"pass": "quantise", "bits": 17})", "/0/bits: expected 2 to 16, found 17"},
      {R"({"pass": "quantise", "bits": 9, "scale": "column"})", "/0/scale: expected \"row\" or"},
      {R"({"pass": "quantise", "bits": 9}, {"pass": "quantise", "bits": 9})",
       "recipe: pass 1, embedding.table: expected a float32 tensor, found one that an earlier "
       "pass encoded"},
      {R"({"pass": "half"})",
       "recipe: pass 0, half: expected \"tensors\", patterns of names, found none"},
      {R"({"pass": "code", "positions": 2, "sub_vectors": 8})",
       "recipe: pass 0, code: expected \"tensors\", patterns of names, found none"},
      {R"({"pass": "code", "positions": 0, "sub_vectors": 8})", "/0/positions: expected 1 to"},
      {R"({"pass": "code", "positions": 9, "sub_vectors": 8})", "/0/sub_vectors: expected 9 to"},
      {R"({"pass": "code", "positions": 2, "sub_vectors": 1e9})",
       "/0/sub_vectors: expected an integer"},
      {R"({"pass": "code", "positions": 3, "sub_vectors": 8, "tensors": ["embedding.table"]})",
       "positions: expected a divisor of 4 columns, found 3"},
      {R"({"pass": "code", "positions": 1, "sub_vectors": 8, "tensors": ["*input_bias"]})",
       "shape"},
      {R"({"pass": "code", "positions": 2, "sub_vectors": 8, "tensors": ["embedding.table"],
          "iterations": 0})",
       "iterations"},
      {R"({"pass": "code", "positions": 2, "sub_vectors": 8, "tensors": ["embedding.table"],
          "restarts": 0})",
       "restarts"},
      {R"({"pass": "code", "positions": 2, "sub_vectors": 8, "tensors": ["embedding.table"]},
          {"pass": "prune", "fraction": 0.5, "tensors": ["embedding.table"]})",
       "recipe: pass 1, embedding.table: expected a tensor that is not coded, found codes"},
      {R"({"pass": "code", "mapping": "shuffled", "positions": 2, "sub_vectors": 99,
          "tensors": ["embedding.table"]})",
       "pool 0: expected 1 to 12 sub-vectors, found 50"},
      {R"({"pass": "code", "positions": 2, "sub_vectors": 26, "tensors": ["embedding.table"]})",
       "pool 0: expected 1 to 12 sub-vectors, found 13"},
      {R"({"pass": "code", "positions": 2, "sub_vectors": 8, "combine": "mean"})",
       "/0/combine: expected \"concatenate\" or \"sum\", found"},
      {R"({"pass": "code", "positions": 2, "sub_vectors": 8, "sweeps": 3})",
       "/0/sweeps: expected \"sweeps\" only with \"combine\": \"sum\" (delete it, or add that), "
       "found 3"},
      {R"({"pass": "code", "positions": 2, "sub_vectors": 8, "combine": "sum", "pools": "one"})",
       "/0: expected \"combine\": \"sum\" or \"pools\", found both"},
      {R"({"pass": "code", "positions": 2, "sub_vectors": 8, "combine": "sum",
          "mapping": "hashed"})",
       "/0: expected \"combine\": \"sum\" or \"mapping\", found both"},
      {R"({"pass": "code", "positions": 3, "sub_vectors": 8, "combine": "sum"})",
       "/0/sub_vectors: expected a multiple of the positions, 3, found 8"},
      {R"({"pass": "code", "positions": 1, "sub_vectors": 13, "combine": "sum",
          "tensors": ["embedding.table"]})",
       "choices: expected 1 to 12, found 13"},
      {R"({"pass": "low_rank", "tensors": ["embedding.table"]})",
       "/0: expected \"error\", found none"},
      {R"({"pass": "low_rank", "rank": 2, "error": 0.5})",
       "/0: expected \"rank\" or \"error\", found both"},
      {R"({"pass": "low_rank", "rank": 5, "tensors": ["embedding.table"]})", "rank"},
      {R"({"pass": "low_rank", "rank": 0, "tensors": ["embedding.table"]})", "rank"},
      {R"({"pass": "low_rank", "rank": 2, "tensors": ["recurrent.0.input_weight"]})",
       "recurrent.0.input_weight: expected a table of the embedding or the softmax, found a "
       "tensor of another kind"},
      {R"({"pass": "low_rank", "rank": 2, "tensors": ["*input_bias"]})",
       "input_bias: expected a matrix, found a vector"},
      {R"({"pass": "quantise", "bits": 9, "tensors": ["embedding.projection"]},
          {"pass": "low_rank", "rank": 2, "tensors": ["embedding.table"]})",
       "recipe: pass 1, embedding.projection: expected a float32 projection of this table alone, "
       "found another form"},
      {R"({"pass": "calibrate", "bits": 9})", "/0: expected \"text\", found none"},
      {R"({"pass": "calibrate", "bits": 9, "text": "x", "tensors": []})", "/0: expected a key"},
  };
  for (const auto& [json, refusal] : cases) {
    LoadedModel model = Model();
    const Status status = Apply("[" + json + "]", model);
    ASSERT_FALSE(status.ok()) << json;
    EXPECT_NE(status.message().find(refusal), std::string::npos)
        << status.message() << "\ninstead of " << refusal;
    EXPECT_EQ(status.message().find('\n'), std::string::npos);
  }
}

TEST(RecipePasses, CalibrationComesAfterQuantisationAndFindsItsTextNextToTheRecipe) {
  LoadedModel model = Model();
  EXPECT_EQ(
      Apply(R"([{"pass": "calibrate", "bits": 9, "text": "text"}])", model, kFolder).message(),
      "recipe: pass 0, calibrate, embedding.table: expected integers (put a quantise pass "
      "before), found floats");
  const std::string passes =
      R"({"pass": "quantise", "bits": 9}, {"pass": "calibrate", "bits": 7, "text": "text"})";
  model = Model();
  const Status status = Apply("[" + passes + "]", model, kFolder);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(model.calibration->path, kFolder + "/text");
  EXPECT_EQ(model.calibration->rule.bits, 7);
  model = Model();
  const std::string outside =
      R"([{"pass": "quantise", "bits": 9}, {"pass": "calibrate", "bits": 7, "text": "../text"}])";
  EXPECT_TRUE(Apply(outside, model, kFolder)
                  .message()
                  .starts_with("recipe: /passes/1/text: expected the name of a file in "))
      << Apply(outside, model, kFolder).message();
  model = Model();
  EXPECT_EQ(Apply("[" + passes + R"(, {"pass": "prune", "fraction": 0.5}])", model).message(),
            "recipe: pass 2: expected calibrate as the last pass, as it runs the finished "
            "model, found a pass after it");
}

// Matrices stay floats until the text of the calibrate pass was run.
TEST(ApplyPasses, RoundingByFeedbackNeedsATextAndWaitsForIt) {
  const std::string fed = R"({"pass": "quantise", "bits": 3, "round_by": "feedback"})";
  const std::string calibrate = R"({"pass": "calibrate", "bits": 7, "text": "text"})";
  LoadedModel model = Model();
  EXPECT_EQ(
      Apply("[" + fed + "]", model, kFolder).message(),
      "recipe: embedding.table: expected a calibrate pass, on whose text rounding by feedback "
      "runs, found none");
  model = Model();
  EXPECT_EQ(Apply("[" + fed + R"(, {"pass": "calibrate", "bits": 7, "ranges": {"a": 1}}])", model,
                  kFolder)
                .message(),
            "recipe: embedding.table: expected a calibrate pass, on whose text rounding by "
            "feedback runs, found one with ranges");
  model = Model();
  EXPECT_EQ(Apply("[" + fed + ", " + fed + ", " + calibrate + "]", model, kFolder).message(),
            "recipe: pass 1, embedding.table: expected a float32 tensor, found one that an earlier "
            "pass quantises");
  model = Model();
  const Status status = Apply("[" + fed + ", " + calibrate + "]", model, kFolder);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_FALSE(model.rounded_with_feedback.empty());
  LoadedModel nearest = Model();
  ASSERT_TRUE(Apply(R"([{"pass": "quantise", "bits": 3}])", nearest, kFolder).ok());
  for (const auto& [id, rounding] : model.rounded_with_feedback) {
    EXPECT_EQ(rounding.bits, 3);
    EXPECT_TRUE(std::holds_alternative<DenseF32>(model.draft.tensors[id].values));
  }
  // Without moments, entries are rounded to the nearest integers.
  const auto waiting = model.rounded_with_feedback;
  RoundWithFeedback({}, 1, model);
  EXPECT_TRUE(model.rounded_with_feedback.empty());
  for (const auto& [id, rounding] : waiting) {
    const auto& found = std::get<Quantised>(model.draft.tensors[id].values);
    const auto& expected = std::get<Quantised>(nearest.draft.tensors[id].values);
    EXPECT_EQ(found.codes, expected.codes);
    EXPECT_EQ(found.scales, expected.scales);
  }
}

}  // namespace
}  // namespace kinglet::apply_passes_test

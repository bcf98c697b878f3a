// Embeddings and classifiers by recipe, against vectors and class scores that PyTorch computed in
// float64: tests/data/bag-classifier (examples/torch/make_bag_fixtures.py says how).
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "converters/convert.h"
#include "converters/token_file.h"
#include "runtime/embedder.h"
#include "tests/converters/files.h"

namespace kinglet {
namespace {

using Rows = std::vector<std::vector<double>>;

Rows ReadRows(const std::string& path) {
  std::ifstream file(path);
  Rows rows;
  for (std::string line; std::getline(file, line);) {
    std::istringstream numbers(line);
    rows.emplace_back();
    for (double number; numbers >> number;) rows.back().push_back(number);
  }
  return rows;
}

class ConvertEmbedding : public testing::TestWithParam<const char*> {
 protected:
  std::string File(const std::string& name) const {
    return std::string(KINGLET_TEST_DATA "/bag-classifier/") + GetParam() + "/" + name;
  }
  ConvertOptions Options() const {
    ConvertOptions options;
    options.checkpoint = File("model.pt");
    options.recipe = File("recipe.json");
    options.output = output_.path();
    return options;
  }
  std::unique_ptr<Embedder> Open(const std::string& backend) const {
    auto model = Model::Open(output_.path(), {.backend = backend});
    EXPECT_TRUE(model.ok()) << model.status().message();
    return std::move(*Embedder::Create(*model));
  }

  const TemporaryFile output_{""};
};

TEST_P(ConvertEmbedding, GivesPyTorchsVectorsAndScores) {
  const auto summary = Convert(Options());
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  const Rows vectors = ReadRows(File("vectors_f64.tsv")), logits = ReadRows(File("logits_f64.tsv"));
  const auto lists = ReadIdLines(File("lists.txt"));
  ASSERT_TRUE(lists.ok());
  ASSERT_EQ(vectors.size(), 100U);
  ASSERT_EQ(lists->size(), 16U);
  ASSERT_EQ(logits.size(), 16U);
  std::vector<double> of_ref;  // all numbers
  for (const char* backend : {"ref64", "ref", "cpu"}) {
    const double tolerance = backend == std::string("ref64") ? 1e-6 : 1e-4;
    const auto embedder = Open(backend);
    std::vector<double> all, vector(12), scores(4);
    for (uint32_t word = 0; word < 100; ++word) {
      ASSERT_TRUE(embedder->Vector(word, std::span(vector)).ok());
      for (size_t i = 0; i < 12; ++i) EXPECT_NEAR(vector[i], vectors[word][i], tolerance);
      all.insert(all.end(), vector.begin(), vector.end());
    }
    for (size_t line = 0; line < lists->size(); ++line) {
      const Status status = embedder->Classify((*lists)[line], scores, {});
      ASSERT_TRUE(status.ok()) << status.message();
      for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(scores[i], logits[line][i], tolerance) << line;
      all.insert(all.end(), scores.begin(), scores.end());
    }
    if (backend == std::string("ref")) of_ref = all;
    if (backend == std::string("cpu")) EXPECT_EQ(all, of_ref);
  }
}

// Norms stay as they are when everything else becomes integers.
TEST_P(ConvertEmbedding, QuantisedScoresStayNear) {
  ConvertOptions options = Options();
  options.bits = 14;
  const auto summary = Convert(options);
  ASSERT_TRUE(summary.ok()) << summary.status().message();
  const Rows logits = ReadRows(File("logits_f64.tsv"));
  const auto lists = ReadIdLines(File("lists.txt"));
  const auto embedder = Open("cpu");
  std::vector<double> scores(4);
  for (size_t line = 0; line < lists->size(); ++line) {
    ASSERT_TRUE(embedder->Classify((*lists)[line], scores, {}).ok());
    for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(scores[i], logits[line][i], 1e-2);
  }
  for (const TensorView& tensor : embedder->model().file().tensors()) {
    const bool norm = tensor.name.ends_with(".scale") || tensor.name.ends_with(".shift");
    EXPECT_TRUE(!norm || std::holds_alternative<DenseView>(tensor.values)) << tensor.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, ConvertEmbedding,
                         testing::Values("full", "full-hidden", "dpq-max", "dpq-hidden-max"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::erase(name, '-');
                           return name;
                         });

class RefusedEmbedding : public testing::Test {
 protected:
  Status ConvertBy(const std::string& recipe) const {
    const TemporaryFile output(""), json(recipe, ".json");
    ConvertOptions options;
    options.checkpoint = KINGLET_TEST_DATA "/bag-classifier/full-hidden/model.pt";
    options.recipe = json.path();
    options.output = output.path();
    return Convert(options).status();
  }
  // What a refusal says behind the file's name.
  std::string Refusal(const std::string& recipe) const {
    const std::string message = ConvertBy(recipe).message();
    return message.substr(std::min(message.find(": "), message.size()));
  }
};

TEST_F(RefusedEmbedding, RecipesThatCannotBe) {
  const std::string embedding = R"({"embedding": {"table": "embedding.table"}, "unused": ["*"])";
  EXPECT_TRUE(ConvertBy(embedding + "}").ok());
  const auto classifier = [&](const std::string& members) {
    return Refusal(embedding + R"(, "classifier": {)" + members + "}}");
  };
  EXPECT_NE(
      classifier(R"("weight": "hidden.2.weight", "padding": 100)").find("classifier, padding"),
      std::string::npos);
  EXPECT_NE(classifier(R"("padding": 0)").find("weight"), std::string::npos);
  EXPECT_NE(classifier(R"("weight": "output.weight")").find("shape [4, 12]"), std::string::npos);
  EXPECT_NE(classifier(R"("weight": "output.weight", "hidden": {"weight": "hidden.2.weight"})")
                .find("input_norm"),
            std::string::npos);
  EXPECT_NE(Refusal(embedding + R"(, "classifier": {"weight": "output.weight"}, "cache": {}})")
                .find("/classifier"),
            std::string::npos);
  EXPECT_NE(Refusal(embedding + R"(, "cache": {}})").find("recurrent"), std::string::npos);
  EXPECT_NE(Refusal(R"({"family": "awd-lstm", "classifier": {}})").find("/classifier"),
            std::string::npos);
}

}  // namespace
}  // namespace kinglet

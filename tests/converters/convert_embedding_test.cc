// Embeddings and classifiers by recipe, against vectors and class scores that PyTorch computed in
// float64: tests/data/bag-classifier, made by examples/torch/make_bag_fixtures.py.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "converters/convert.h"
#include "converters/splitmix.h"
#include "converters/texts/token_file.h"
#include "runtime/embedder.h"
#include "tests/converters/files.h"

namespace kinglet::convert_embedding_test {
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
    if (backend == std::string("cpu")) {
      EXPECT_EQ(all, of_ref);
    }
  }
}

// Row scales are exact at 9 bits (docs/NUMERICS.md, rule 1). Norms stay floats when all other
// tensors become integers.
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
    for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(scores[i], logits[line][i], 3e-2);
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
  // The part of the message after the file's name.
  std::string Refusal(const std::string& recipe) const {
    const std::string message = ConvertBy(recipe).message();
    return message.substr(std::min(message.find(": "), message.size()));
  }
};

TEST_F(RefusedEmbedding, RecipesThatCannotBe) {
  const std::string embedding =
      R"({"embedding": {"scale": 1, "table": "embedding.table"}, "unused": ["*"])";
  EXPECT_TRUE(ConvertBy(embedding + "}").ok());
  const auto classifier = [&](const std::string& members) {
    return Refusal(embedding + R"(, "classifier": {)" + members + "}}");
  };
  EXPECT_NE(
      classifier(R"("weight": "hidden.2.weight", "padding": 100)").find("classifier, padding"),
      std::string::npos);
  EXPECT_NE(classifier(R"("padding": 0)").find("weight"), std::string::npos);
  EXPECT_NE(classifier(R"("padding": "none", "weight": "output.weight")").find("shape [4, 12]"),
            std::string::npos);
  EXPECT_NE(
      classifier(
          R"("padding": 0, "weight": "output.weight", "hidden": {"weight": "hidden.2.weight"})")
          .find("input_norm"),
      std::string::npos);
  EXPECT_NE(Refusal(embedding + R"(, "classifier": {"weight": "output.weight"}, "cache": {}})")
                .find("/classifier"),
            std::string::npos);
  EXPECT_NE(Refusal(embedding + R"(, "cache": {}})").find("recurrent"), std::string::npos);
  EXPECT_NE(Refusal(R"({"family": "awd-lstm", "classifier": {}})").find("/classifier"),
            std::string::npos);
}

// A checkpoint of float32 tensors as safetensors: length of the header, header, data.
class TinyCheckpoint {
 public:
  void Add(const std::string& name, const std::string& shape, const std::vector<float>& values) {
    header_ += (header_.empty() ? "{\"" : ",\"") + name + R"(":{"dtype":"F32","shape":[)" + shape +
               R"(],"data_offsets":[)" + std::to_string(data_.size()) + ",";
    data_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    header_ += std::to_string(data_.size()) + "]}";
  }
  std::string File() const {
    const std::string header = header_ + "}";
    const uint64_t length = header.size();
    return std::string(reinterpret_cast<const char*>(&length), 8) + header + data_;
  }

 private:
  std::string header_, data_;
};

std::vector<float> RandomFloats(size_t count, uint64_t seed) {
  SplitMix64 random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = random.Signed();
  return values;
}

std::unique_ptr<Embedder> ConvertByExample(const TinyCheckpoint& tensors, const char* recipe) {
  const TemporaryFile checkpoint(tensors.File(), ".safetensors"), output("");
  ConvertOptions options;
  options.checkpoint = checkpoint.path();
  options.recipe = std::string(KINGLET_DEMO_DATA "/../recipes/") + recipe;
  options.output = output.path();
  const auto summary = Convert(options);
  EXPECT_TRUE(summary.ok()) << summary.status().message();
  auto model = Model::Open(output.path(), {.backend = "ref64"});
  EXPECT_TRUE(model.ok()) << model.status().message();
  return std::move(*Embedder::Create(*model));
}

// DPQ-SX as its authors compute it, in double precision: the value of the largest normalised
// response at each of 32 positions.
TEST(ExampleRecipes, LuongsEncoderEmbedding) {
  constexpr size_t kWords = 20, kPositions = 32, kChoices = 4, kLength = 2;
  const std::string scope = "dynamic_seq2seq/encoder/kdq_emb/";
  const auto query = RandomFloats(kWords * kPositions * kLength, 1);
  const auto keys = RandomFloats(kPositions * kChoices * kLength, 2);
  const auto values = RandomFloats(kPositions * kChoices * kLength, 3);
  const auto mean = RandomFloats(kChoices, 4);
  const std::vector<float> variance = {0.5F, 1, 2, 0.25F};
  TinyCheckpoint tensors;
  tensors.Add(scope + "query_wemb", "20,64", query);
  tensors.Add(scope + "centroids_k", "32,4,2", keys);
  tensors.Add(scope + "centroids_v", "32,4,2", values);
  tensors.Add(scope + "batch_normalization/moving_mean", "4", mean);
  tensors.Add(scope + "batch_normalization/moving_variance", "4", variance);
  tensors.Add("dynamic_seq2seq/decoder/output_projection/kernel", "1,2", {1, 2});
  const auto embedder = ConvertByExample(tensors, "luong-encoder-embedding.json");
  ASSERT_EQ(embedder->width(), kPositions * kLength);
  ASSERT_EQ(embedder->model().vocabulary_size(), kWords);
  std::vector<double> vector(kPositions * kLength);
  for (size_t word = 0; word < kWords; ++word) {
    ASSERT_TRUE(embedder->Vector(static_cast<uint32_t>(word), std::span(vector)).ok());
    for (size_t j = 0; j < kPositions; ++j) {
      size_t best = 0;
      double largest = -1e300;
      for (size_t k = 0; k < kChoices; ++k) {
        double response = 0;
        for (size_t i = 0; i < kLength; ++i) {
          response += double{query[(word * kPositions + j) * kLength + i]} *
                      double{keys[(j * kChoices + k) * kLength + i]};
        }
        response = (response - double{mean[k]}) / std::sqrt(double{variance[k]} + 1e-3);
        if (response > largest) {
          largest = response;
          best = k;
        }
      }
      for (size_t i = 0; i < kLength; ++i) {
        EXPECT_EQ(vector[j * kLength + i], double{values[(j * kChoices + best) * kLength + i]});
      }
    }
  }
}

// A position has as many choices as the table has words, so nothing is lost.
TEST(ExampleRecipes, BertsWordTable) {
  const auto table = RandomFloats(size_t{32} * 256, 5);
  TinyCheckpoint tensors;
  tensors.Add("bert.embeddings.word_embeddings.weight", "32,256", table);
  tensors.Add("bert.embeddings.LayerNorm.weight", "2", {1, 2});
  const auto embedder = ConvertByExample(tensors, "bert-word-table.json");
  ASSERT_EQ(embedder->width(), 256U);
  std::vector<double> vector(256);
  for (uint32_t word = 0; word < 32; ++word) {
    ASSERT_TRUE(embedder->Vector(word, std::span(vector)).ok());
    for (size_t i = 0; i < 256; ++i) EXPECT_NEAR(vector[i], double{table[word * 256 + i]}, 1e-6);
  }
}

}  // namespace
}  // namespace kinglet::convert_embedding_test

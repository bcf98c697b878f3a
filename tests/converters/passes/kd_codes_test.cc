#include "converters/passes/kd_codes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/converters/passes/coded_rows.h"
#include "tests/converters/passes/flat_fixture.h"

namespace kinglet::kd_codes_test {
namespace {

constexpr uint64_t kWords = 50, kPositions = 4, kChoices = 8;

// One file of tests/data/codes.
struct Example {
  KdTraining training;
  std::vector<float> embeddings, gain, offset, mean, variance, kernel, bias;
  std::vector<double> rows;

  KdTraining Training() const {
    KdTraining made = training;
    made.embeddings = embeddings;
    made.gain = gain;
    made.offset = offset;
    made.mean = mean;
    made.variance = variance;
    made.kernel = kernel;
    made.bias = bias;
    return made;
  }
};

Example ReadExample(const std::string& name, bool shared, uint64_t length, uint64_t width) {
  FlatFixture fixture("codes/kd_" + name + ".npy");
  Example example;
  KdTraining& training = example.training;
  training.shared = shared;
  training.words = kWords;
  training.positions = kPositions;
  training.choices = kChoices;
  training.length = length;
  training.codes = fixture.Take<uint32_t>(kWords * kPositions);
  example.embeddings = fixture.Take<float>((shared ? 1 : kPositions) * kChoices * length);
  if (width > 0) {
    training.aggregator = KdAggregator::kMeanLinear;
    training.width = width;
    example.gain = fixture.Take<float>(length);
    example.offset = fixture.Take<float>(length);
    example.mean = fixture.Take<float>(length);
    example.variance = fixture.Take<float>(length);
    example.kernel = fixture.Take<float>(length * width);
    example.bias = fixture.Take<float>(width);
  }
  example.rows = fixture.Take<double>(kWords * (width > 0 ? width : length));
  EXPECT_EQ(fixture.left(), 0U) << name;
  return example;
}

std::vector<double> RowsOf(const KdTable& embedding) {
  std::vector<double> rows = DecodedRows(embedding.table);
  if (embedding.projection.empty()) return rows;
  const uint64_t length = embedding.table.length, width = embedding.projection.size() / length;
  std::vector<double> projected;
  for (uint64_t word = 0; word < embedding.table.rows; ++word) {
    for (uint64_t out = 0; out < width; ++out) {
      double sum = 0;
      for (uint64_t in = 0; in < length; ++in) {
        sum += rows[word * length + in] * embedding.projection[out * length + in];
      }
      projected.push_back(sum);
    }
  }
  return projected;
}

TEST(KdEmbedding, MeansEqualPyTorch) {
  for (const bool shared : {false, true}) {
    const Example example = ReadExample(shared ? "mean_shared" : "mean", shared, 6, 0);
    const auto embedding = KdEmbedding(example.Training());
    ASSERT_TRUE(embedding.ok()) << embedding.status().message();
    EXPECT_TRUE(embedding->projection.empty());
    EXPECT_EQ(embedding->table.pools.size(), shared ? 1U : kPositions);
    EXPECT_LT(LargestDifference(RowsOf(*embedding), example.rows), 1e-15);
    EXPECT_EQ(WithoutProjection(*embedding).codebook, example.embeddings);
  }
}

TEST(KdEmbedding, BatchNormAndDenseLayerFoldIntoTheProjection) {
  const Example example = ReadExample("mean_linear", false, 5, 7);
  const auto embedding = KdEmbedding(example.Training());
  ASSERT_TRUE(embedding.ok()) << embedding.status().message();
  // Column 5 is the constant.
  EXPECT_EQ(embedding->table.length, 6U);
  EXPECT_EQ(embedding->projection.size(), 7U * 6);
  EXPECT_LT(LargestDifference(RowsOf(*embedding), example.rows), 1e-6);
  const CodedTable wide = WithoutProjection(*embedding);
  EXPECT_EQ(wide.length, 7U);
  EXPECT_EQ(wide.codes, embedding->table.codes);
  EXPECT_LT(LargestDifference(DecodedRows(wide), example.rows), 1e-6);
}

TEST(KdEmbedding, ALayerWithoutConstantHasNoColumnForIt) {
  const Example example = ReadExample("mean_linear", false, 5, 7);
  KdTraining training = example.Training();
  training.gain = training.offset = training.mean = training.variance = training.bias = {};
  const auto embedding = KdEmbedding(training);
  ASSERT_TRUE(embedding.ok()) << embedding.status().message();
  EXPECT_EQ(embedding->table.length, 5U);
  ASSERT_EQ(embedding->projection.size(), 35U);
  EXPECT_EQ(embedding->projection[2 * 5 + 3], example.kernel[3 * 7 + 2]);
}

TEST(KdEmbedding, RefusesWhatDoesNotFit) {
  const Example example = ReadExample("mean_linear", false, 5, 7);
  const auto refusal = [&](auto change) {
    KdTraining training = example.Training();
    change(training);
    const auto result = KdEmbedding(training);
    if (result.ok()) return std::string("accepted");
    EXPECT_EQ(result.status().code(), KINGLET_INVALID_CHECKPOINT);
    return result.status().message();
  };
  EXPECT_EQ(refusal([](KdTraining& training) { training.codes.pop_back(); }),
            "kd codes: codes: expected 200 entries as [50, 4], found 199");
  EXPECT_EQ(refusal([](KdTraining& training) { training.codes[9] = 8; }),
            "kd codes: code 9: expected below 8, found 8");
  EXPECT_EQ(refusal([](KdTraining& training) { training.shared = true; }),
            "kd codes: code embeddings: expected 40 entries as [1, 8, 5], found 160");
  EXPECT_EQ(refusal([](KdTraining& training) { training.width = 0; }),
            "kd codes: width: expected 1 to 2^32 - 1, found 0");
  EXPECT_EQ(refusal([](KdTraining& training) { training.width = 6; }),
            "kd codes: kernel: expected 30 entries as [5, 6], found 35");
  EXPECT_EQ(refusal([](KdTraining& training) { training.mean = {}; }),
            "kd codes: batch norm mean: expected 5 entries, found 0");
  EXPECT_EQ(refusal([](KdTraining& training) { training.bias = training.bias.first(6); }),
            "kd codes: bias: expected 7 entries, found 6");
  EXPECT_EQ(refusal([](KdTraining& training) { training.epsilon = NAN; }),
            "kd codes: batch norm epsilon: expected a number of at least 0, found nan");
  const std::vector<float> tiny(5, 0), huge(5, std::numeric_limits<float>::max());
  EXPECT_EQ(refusal([&](KdTraining& training) {
              training.variance = tiny;
              training.epsilon = 0;
            }),
            "kd codes: batch norm variance, entry 0: expected at least 0, and above 0 with "
            "epsilon added, found 0.000000");
  EXPECT_NE(refusal([&](KdTraining& training) {
              training.variance = tiny;
              training.gain = huge;
            }).find("kd codes: batch norm and kernel, entry 0: expected a finite number"),
            std::string::npos);
}

TEST(CodesFromLogits, TheFirstLargestWins) {
  const std::vector<float> logits = {0, 2, 2, -3, -1, -1};
  EXPECT_EQ(*CodesFromLogits(logits, 3), (std::vector<uint32_t>{1, 1}));
  EXPECT_EQ(*CodesFromLogits(logits, 1), std::vector<uint32_t>(6, 0));
  EXPECT_FALSE(CodesFromLogits(logits, 4).ok());
  EXPECT_FALSE(CodesFromLogits(logits, 0).ok());
  EXPECT_FALSE(CodesFromLogits(std::vector<float>{0, NAN}, 2).ok());
}

}  // namespace
}  // namespace kinglet::kd_codes_test

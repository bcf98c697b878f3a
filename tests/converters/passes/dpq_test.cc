#include "converters/passes/dpq.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/converters/passes/coded_rows.h"
#include "tests/converters/passes/flat_fixture.h"

namespace kinglet::dpq_test {
namespace {

using Response = DpqTraining::Response;
using BatchNorm = DpqTraining::BatchNorm;

// One file of tests/data/codes.
struct Example {
  DpqTraining training;
  std::vector<float> query, keys, values, mean, variance;
  std::vector<uint32_t> codes;
  std::vector<double> rows;
};

Example ReadExample(const std::string& name, DpqTraining training) {
  training.words = 50;
  training.positions = 4;
  training.choices = 8;
  Example example;
  FlatFixture fixture("codes/dpq_" + name + ".npy");
  const uint64_t subspaces = training.shared ? 1 : 4;
  example.query = fixture.Take<float>(50 * 4 * training.key_length);
  example.keys = fixture.Take<float>(subspaces * 8 * training.key_length);
  if (training.response == Response::kDot) {
    example.values = fixture.Take<float>(subspaces * 8 * training.value_length);
  }
  const uint64_t statistics = training.batch_norm == BatchNorm::kNone        ? 0
                              : training.batch_norm == BatchNorm::kPerChoice ? 8
                                                                             : 4 * 8;
  example.mean = fixture.Take<float>(statistics);
  example.variance = fixture.Take<float>(statistics);
  example.codes = fixture.Take<uint32_t>(50 * 4);
  example.rows = fixture.Take<double>(50 * training.value_length * (training.additive ? 1 : 4));
  EXPECT_EQ(fixture.left(), 0U) << name;
  training.query = example.query;
  training.keys = example.keys;
  training.values = example.values;
  training.mean = example.mean;
  training.variance = example.variance;
  example.training = training;
  return example;
}

DpqTraining Declared(Response response, bool shared, BatchNorm batch_norm, bool additive,
                     uint64_t key_length, uint64_t value_length) {
  DpqTraining training;
  training.response = response;
  training.shared = shared;
  training.batch_norm = batch_norm;
  training.epsilon = batch_norm == BatchNorm::kPerChoice ? 1e-3 : 1e-5;
  training.additive = additive;
  training.key_length = key_length;
  training.value_length = value_length;
  return training;
}

DpqTraining SharedDot() {
  return Declared(Response::kDot, true, BatchNorm::kPerChoice, false, 3, 5);
}

TEST(AssignDpqCodes, EqualsPyTorchInDoublePrecision) {
  const std::pair<const char*, DpqTraining> cases[] = {
      {"sx_shared_choice", SharedDot()},
      {"sx_choice", Declared(Response::kDot, false, BatchNorm::kPerChoice, false, 3, 3)},
      {"sx_response_additive",
       Declared(Response::kDot, false, BatchNorm::kPerResponse, true, 6, 6)},
      {"vq_shared_response",
       Declared(Response::kEuclidean, true, BatchNorm::kPerResponse, false, 3, 3)},
      {"vq_choice", Declared(Response::kEuclidean, false, BatchNorm::kPerChoice, false, 3, 3)},
      {"vq_shared_additive", Declared(Response::kEuclidean, true, BatchNorm::kNone, true, 6, 6)}};
  for (const auto& [name, declared] : cases) {
    const Example example = ReadExample(name, declared);
    for (const size_t threads : {1, 3, 100}) {
      const auto result = AssignDpqCodes(example.training, threads);
      ASSERT_TRUE(result.ok()) << name << ": " << result.status().message();
      EXPECT_EQ(result->table.codes, example.codes) << name;
      EXPECT_EQ(result->near_codes, 0U) << name;
      EXPECT_GT(result->smallest_gap, 1e-5) << name;
      EXPECT_EQ(result->table.pools.size(), declared.shared ? 1U : 4U) << name;
      EXPECT_LT(LargestDifference(DecodedRows(result->table), example.rows), 1e-15) << name;
    }
  }
}

// Codes depend on batch norm's axis and epsilon, so both must be given, not guessed.
TEST(AssignDpqCodes, WithoutBatchNormCodesDiffer) {
  const Example example = ReadExample("sx_shared_choice", SharedDot());
  DpqTraining training = example.training;
  training.batch_norm = BatchNorm::kNone;
  training.mean = training.variance = {};
  const auto result = AssignDpqCodes(training, 1);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_NE(result->table.codes, example.codes);
}

TEST(AssignDpqCodes, TheFirstOfEqualResponsesWinsAndIsReported) {
  // Keys 1 and 3 are the same, key 2 is a little larger than key 0 is.
  const std::vector<float> keys = {1, 2, 1.0000002F, 2};
  const std::vector<float> query = {1, -1, 0, 3};
  DpqTraining training = Declared(Response::kDot, true, BatchNorm::kNone, false, 1, 1);
  training.words = 4;
  training.positions = 1;
  training.choices = 4;
  training.query = query;
  training.keys = keys;
  const auto result = AssignDpqCodes(training, 1);
  ASSERT_TRUE(result.ok()) << result.status().message();
  // For query -1, keys 0 and 2 are the nearest and nearly tie; for query 0, all keys tie.
  EXPECT_EQ(result->table.codes, (std::vector<uint32_t>{1, 0, 0, 1}));
  EXPECT_EQ(result->near_codes, 4U);
  EXPECT_EQ(result->near_words, 4U);
  EXPECT_EQ(result->smallest_gap, 0);
  EXPECT_EQ(NearCodesNote(*result, "q"),
            "'q': 4 of 4 codes, of 4 words, are so near another choice that float32 arithmetic "
            "might have decided otherwise; the smallest gap is 0");

  training.choices = 1;
  training.keys = std::span(keys).first(1);
  const auto single = AssignDpqCodes(training, 1);
  ASSERT_TRUE(single.ok());
  EXPECT_EQ(single->table.codes, std::vector<uint32_t>(4, 0));
  EXPECT_EQ(single->near_codes, 0U);
  EXPECT_EQ(NearCodesNote(*single, "q"), "");
}

// Large terms cancel, so float32 loses what double resolves: the bound has to cover that, where a
// fraction of the responses themselves would not.
TEST(AssignDpqCodes, NearnessKnowsOfCancellation) {
  const std::vector<float> query = {1000}, keys = {1000.0001F, 999.9998F};
  DpqTraining training = Declared(Response::kEuclidean, true, BatchNorm::kNone, false, 1, 1);
  training.words = training.positions = 1;
  training.choices = 2;
  training.query = query;
  training.keys = keys;
  const auto result = AssignDpqCodes(training, 1);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result->table.codes, std::vector<uint32_t>{0});
  EXPECT_EQ(result->near_codes, 1U);
  // Far apart, they are not near.
  const std::vector<float> far = {1000.0001F, 900};
  training.keys = far;
  EXPECT_EQ(AssignDpqCodes(training, 1)->near_codes, 0U);
}

TEST(AssignDpqCodes, RefusesWhatDoesNotFit) {
  const Example example = ReadExample("sx_shared_choice", SharedDot());
  const auto refusal = [&](auto change) {
    DpqTraining training = example.training;
    change(training);
    const auto result = AssignDpqCodes(training, 2);
    if (result.ok()) return std::string("accepted");
    EXPECT_EQ(result.status().code(), KINGLET_INVALID_CHECKPOINT);
    return result.status().message();
  };
  EXPECT_EQ(refusal([](DpqTraining& training) { training.words = 49; }),
            "dpq: query: expected 588 entries as [49, 4, 3], found 600");
  EXPECT_EQ(refusal([](DpqTraining& training) { training.positions = 0; }),
            "dpq: positions: expected 1 to 2^32 - 1, found 0");
  EXPECT_EQ(refusal([](DpqTraining& training) { training.choices = uint64_t{1} << 32; }),
            "dpq: choices: expected 1 to 2^32 - 1, found 4294967296");
  EXPECT_EQ(refusal([](DpqTraining& training) {
              training.words = training.positions = training.key_length = 4294967295;
            }),
            "dpq: query: expected fewer than 2^64 entries, found [4294967295, 4294967295, "
            "4294967295]");
  EXPECT_EQ(refusal([](DpqTraining& training) { training.shared = false; }),
            "dpq: keys: expected 96 entries as [4, 8, 3], found 24");
  EXPECT_EQ(refusal([](DpqTraining& training) { training.value_length = 6; }),
            "dpq: values: expected 48 entries as [1, 8, 6], found 40");
  EXPECT_EQ(refusal([](DpqTraining& training) { training.values = {}; }),
            "dpq: value length: expected 3, as values are the keys, found 5");
  EXPECT_EQ(refusal([](DpqTraining& training) { training.batch_norm = BatchNorm::kPerResponse; }),
            "dpq: batch norm mean: expected 32 entries as [4, 8], found 8");
  EXPECT_EQ(refusal([](DpqTraining& training) { training.batch_norm = BatchNorm::kNone; }),
            "dpq: batch norm mean: expected none, found 8");
  EXPECT_EQ(refusal([](DpqTraining& training) { training.epsilon = -1; }),
            "dpq: batch norm epsilon: expected a number of at least 0, found -1.000000");
  const std::vector<float> negative = {1, 1, -1, 1, 1, 1, 1, 1};
  EXPECT_EQ(refusal([&](DpqTraining& training) { training.variance = negative; }),
            "dpq: batch norm variance, entry 2: expected at least 0, and above 0 with epsilon "
            "added, found -1.000000");
  std::vector<float> query = example.query;
  query[7] = NAN;
  EXPECT_EQ(refusal([&](DpqTraining& training) { training.query = query; }),
            "dpq: query, entry 7: expected a finite number, found NaN");
}

}  // namespace
}  // namespace kinglet::dpq_test

#include "converters/passes/summed_codes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "converters/passes/product_quantise.h"
#include "converters/passes/reconstruction.h"
#include "converters/splitmix.h"
#include "tests/converters/passes/coded_rows.h"

namespace kinglet::summed_codes_test {
namespace {

std::vector<float> RandomValues(uint64_t count, uint64_t seed) {
  SplitMix64 random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = random.Signed();
  return values;
}

SumQuantisation Options(uint64_t positions, uint64_t choices, uint64_t sweeps) {
  SumQuantisation options;
  options.positions = positions;
  options.choices = choices;
  options.sweeps = sweeps;
  options.clustering.iterations = 50;
  options.clustering.tolerance = 0;
  return options;
}

CodedTable Quantised(const std::vector<float>& values, const Shape& shape,
                     const SumQuantisation& options) {
  Result<CodedTable> table = QuantiseToSums(values, shape, options);
  EXPECT_TRUE(table.ok()) << table.status().message();
  return table.ok() ? *std::move(table) : CodedTable{};
}

double SquaredError(const std::vector<float>& values, const CodedTable& table) {
  const std::vector<double> rows = DecodedRows(table);
  double sum = 0;
  for (size_t i = 0; i < values.size(); ++i) sum += std::pow(rows[i] - double{values[i]}, 2);
  return sum;
}

TEST(QuantiseToSums, FillsTheTable) {
  const CodedTable table = Quantised(RandomValues(60 * 7, 1), {60, 7}, Options(3, 5, 2));
  EXPECT_EQ(table.combine, Combine::kSum);
  EXPECT_EQ(table.rows, 60U);
  EXPECT_EQ(table.positions, 3U);
  EXPECT_EQ(table.length, 7U);
  EXPECT_EQ(table.pools, std::vector<uint32_t>(3, 5));
  EXPECT_EQ(table.codebook.size(), 3U * 5 * 7);
  ASSERT_EQ(table.codes.size(), 60U * 3);
  EXPECT_LT(*std::max_element(table.codes.begin(), table.codes.end()), 5U);
}

// When sweeps change nothing more, no row can choose better at any single position, and each code
// vector is the mean of the residuals that chose it.
TEST(QuantiseToSums, EndsInALocalOptimum) {
  constexpr uint64_t kRows = 120, kCols = 6, kPositions = 3, kChoices = 4;
  const std::vector<float> values = RandomValues(kRows * kCols, 2);
  const CodedTable table = Quantised(values, {kRows, kCols}, Options(kPositions, kChoices, 200));
  const std::vector<double> rows = DecodedRows(table);
  for (uint64_t position = 0; position < kPositions; ++position) {
    std::vector<double> sums(kChoices * kCols), members(kChoices);
    for (uint64_t row = 0; row < kRows; ++row) {
      const uint32_t code = table.codes[row * kPositions + position];
      std::vector<double> errors(kChoices);
      for (uint64_t choice = 0; choice < kChoices; ++choice) {
        for (uint64_t i = 0; i < kCols; ++i) {
          const auto entry = [&](uint64_t c) {
            return double{table.codebook[(position * kChoices + c) * kCols + i]};
          };
          const double left = double{values[row * kCols + i]} - rows[row * kCols + i] + entry(code);
          errors[choice] += std::pow(left - entry(choice), 2);
          if (choice == code) sums[code * kCols + i] += left;
        }
      }
      ++members[code];
      EXPECT_LE(errors[code], *std::min_element(errors.begin(), errors.end()) + 1e-5);
    }
    for (uint64_t entry = 0; entry < kChoices * kCols; ++entry) {
      if (members[entry / kCols] == 0) continue;
      EXPECT_NEAR(table.codebook[position * kChoices * kCols + entry],
                  sums[entry] / members[entry / kCols], 1e-5);
    }
  }
}

TEST(QuantiseToSums, MorePositionsAndSweepsAreNeverWorse) {
  const std::vector<float> values = RandomValues(200 * 8, 3);
  double before = std::numeric_limits<double>::infinity();
  for (const uint64_t positions : {1, 2, 4, 8}) {
    const double unswept =
        SquaredError(values, Quantised(values, {200, 8}, Options(positions, 8, 0)));
    const double swept =
        SquaredError(values, Quantised(values, {200, 8}, Options(positions, 8, 8)));
    EXPECT_LT(unswept, before);
    EXPECT_LE(swept, unswept * (1 + 1e-6));
    before = unswept;
  }
}

// With one position, summed codes are k-means of complete rows, like product quantisation.
TEST(QuantiseToSums, OnePositionIsClustering) {
  const std::vector<float> values = RandomValues(90 * 5, 4);
  const CodedTable sums = Quantised(values, {90, 5}, Options(1, 9, 0));
  ProductQuantisation options;
  options.pools = {9};
  options.clustering = Options(1, 9, 0).clustering;
  const CodedTable parts = *ProductQuantise(values, {90, 5}, options);
  EXPECT_EQ(sums.codebook, parts.codebook);
  EXPECT_EQ(sums.codes, parts.codes);
}

// Rows that are sums of few vectors are found exactly.
TEST(QuantiseToSums, EveryRowItsOwnVectorIsExact) {
  const std::vector<float> values = RandomValues(9 * 4, 5);
  const CodedTable table = Quantised(values, {9, 4}, Options(2, 9, 3));
  const std::vector<float> expanded = ExpandedTable(table);
  for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(expanded[i], values[i], 1e-7);
}

TEST(QuantiseToSums, TheSameForAnyNumberOfThreads) {
  const std::vector<float> values = RandomValues(333 * 6, 6);
  SumQuantisation options = Options(4, 8, 3);
  const CodedTable one = Quantised(values, {333, 6}, options);
  options.clustering.threads = 3;
  const CodedTable three = Quantised(values, {333, 6}, options);
  EXPECT_EQ(one.codebook, three.codebook);
  EXPECT_EQ(one.codes, three.codes);
  options.clustering.seed = 2;
  EXPECT_NE(Quantised(values, {333, 6}, options).codes, one.codes);
}

TEST(QuantiseToSums, SaysHowFarItIs) {
  SumQuantisation options = Options(3, 4, 1);
  uint64_t last = 0, calls = 0;
  options.progress = [&](uint64_t position, const KMeansProgress&) {
    EXPECT_GE(position, last);
    last = position;
    ++calls;
  };
  Quantised(RandomValues(50 * 3, 7), {50, 3}, options);
  EXPECT_EQ(last, 2U);
  EXPECT_GE(calls, 3U);
}

TEST(QuantiseToSums, RefusesWhatDoesNotFit) {
  const auto refusal = [](size_t entries, const Shape& shape, const SumQuantisation& options) {
    const auto table = QuantiseToSums(std::vector<float>(entries, 1), shape, options);
    return table.ok() ? "accepted" : table.status().message();
  };
  const std::string what = "cannot quantise to sums: ";
  EXPECT_EQ(refusal(12, {4, 3}, Options(2, 4, 1)), "accepted");
  EXPECT_EQ(refusal(1, {1, 1}, Options(1, 1, 0)), "accepted");
  EXPECT_EQ(refusal(12, {12}, Options(2, 4, 1)),
            what + "shape: expected a matrix that is not empty, found [12]");
  EXPECT_EQ(refusal(0, {4, 0}, Options(2, 4, 1)),
            what + "shape: expected a matrix that is not empty, found [4, 0]");
  EXPECT_EQ(refusal(11, {4, 3}, Options(2, 4, 1)),
            what + "values: expected [4, 3] entries, found 11");
  EXPECT_EQ(refusal(12, {4, 3}, Options(0, 4, 1)), what + "positions: expected 1 to 8192, found 0");
  EXPECT_EQ(refusal(12, {4, 3}, Options(8193, 4, 1)),
            what + "positions: expected 1 to 8192, found 8193");
  EXPECT_EQ(refusal(12, {4, 3}, Options(2, 0, 1)), what + "choices: expected 1 to 4, found 0");
  EXPECT_EQ(refusal(12, {4, 3}, Options(2, 5, 1)), what + "choices: expected 1 to 4, found 5");
  SumQuantisation no_restarts = Options(2, 4, 1);
  no_restarts.clustering.restarts = 0;
  EXPECT_NE(refusal(12, {4, 3}, no_restarts).find("restarts"), std::string::npos);
  const std::vector<float> infinite(12, INFINITY);
  EXPECT_EQ(QuantiseToSums(infinite, {4, 3}, Options(2, 4, 1)).status().code(), KINGLET_NOT_FINITE);
}

}  // namespace
}  // namespace kinglet::summed_codes_test

#include "converters/passes/product_quantise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>

#include "converters/passes/reconstruction.h"
#include "converters/passes/slim_mapping.h"
#include "converters/passes/sub_vectors.h"
#include "converters/splitmix.h"

namespace kinglet::product_quantise_test {
namespace {

std::vector<float> RandomValues(uint64_t count, uint64_t seed) {
  SplitMix64 random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = random.Signed();
  return values;
}

ProductQuantisation Options(uint64_t positions, std::vector<uint32_t> pools) {
  ProductQuantisation options;
  options.positions = positions;
  options.pools = std::move(pools);
  options.clustering.restarts = 3;
  options.clustering.iterations = 100;
  options.clustering.tolerance = 0;
  return options;
}

CodedTable Quantised(const std::vector<float>& values, const Shape& shape,
                     const ProductQuantisation& options) {
  Result<CodedTable> table = ProductQuantise(values, shape, options);
  EXPECT_TRUE(table.ok()) << table.status().message();
  return table.ok() ? *std::move(table) : CodedTable{};
}

double SquaredDistance(const float* a, const float* b, uint64_t length) {
  double sum = 0;
  for (uint64_t i = 0; i < length; ++i) sum += (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
  return sum;
}

// A converged table cannot be improved: every code is the nearest of its pool, and every sub-vector
// is the mean of the parts that draw it (FitSubVectors changes nothing).
TEST(ProductQuantise, IsALocalOptimum) {
  const Shape shape = {150, 12};
  const std::vector<float> values = RandomValues(150 * 12, 1);
  for (const auto& pools : {std::vector<uint32_t>{20}, std::vector<uint32_t>{8, 8, 8, 8},
                            std::vector<uint32_t>{5, 9, 1, 30}}) {
    const CodedTable table = Quantised(values, shape, Options(4, pools));
    ASSERT_EQ(table.pools, pools);
    ASSERT_EQ(table.codes.size(), 150U * 4);
    EXPECT_EQ(table.length, 3U);
    EXPECT_EQ(Cols(table), 12U);
    uint64_t first = 0;
    for (uint64_t position = 0; position < 4; ++position) {
      const uint32_t pool = pools[PoolOf(position, pools.size())];
      for (uint64_t row = 0; row < 150; ++row) {
        const float* part = &values[row * 12 + position * 3];
        double nearest = 1e30;
        for (uint64_t c = 0; c < pool; ++c) {
          nearest = std::min(nearest, SquaredDistance(part, &table.codebook[(first + c) * 3], 3));
        }
        const uint32_t code = table.codes[row * 4 + position];
        ASSERT_LT(code, pool);
        EXPECT_LE(SquaredDistance(part, &table.codebook[(first + code) * 3], 3), nearest + 1e-5);
      }
      if (pools.size() > 1) first += pool;
    }
    const Result<CodedTable> fitted = FitSubVectors(values, shape, 4, pools, table.codes, 1);
    ASSERT_TRUE(fitted.ok());
    EXPECT_EQ(fitted->codebook, table.codebook);
  }
}

// Rows that are made of few different parts are found exactly.
TEST(ProductQuantise, FindsPartsThatAreThere) {
  const Shape shape = {400, 6};
  const std::vector<float> parts = RandomValues(2 * 5 * 3, 2);
  std::vector<float> values;
  SplitMix64 random(3);
  for (int row = 0; row < 400; ++row) {
    for (int position = 0; position < 2; ++position) {
      const auto part = parts.begin() + (position * 5 + random.Below(5)) * 3;
      values.insert(values.end(), part, part + 3);
    }
  }
  ProductQuantisation options = Options(2, {5, 5});
  options.clustering.restarts = 10;
  EXPECT_EQ(ExpandedTable(Quantised(values, shape, options)), values);
  options.pools = {10};
  EXPECT_EQ(ExpandedTable(Quantised(values, shape, options)), values);
}

TEST(ProductQuantise, BeatsAFixedMapping) {
  const Shape shape = {300, 8};
  const std::vector<float> values = RandomValues(300 * 8, 4);
  for (const auto& pools : {std::vector<uint32_t>{64}, EvenPools(66, 4)}) {
    const auto codes = ShuffledCodes(shape, 4, pools, 1);
    ASSERT_TRUE(codes.ok());
    const auto fixed = FitSubVectors(values, shape, 4, pools, *codes, 1);
    ASSERT_TRUE(fixed.ok());
    const CodedTable clustered = Quantised(values, shape, Options(4, pools));
    EXPECT_LT(Compare(values, shape, clustered).relative_error,
              0.5 * Compare(values, shape, *fixed).relative_error);
  }
}

// As many positions as columns, one position, and a single sub-vector.
TEST(ProductQuantise, TheExtremes) {
  const Shape shape = {20, 4};
  const std::vector<float> values = RandomValues(80, 5);
  const CodedTable whole = Quantised(values, shape, Options(1, {20}));
  EXPECT_EQ(ExpandedTable(whole), values);
  const CodedTable entries = Quantised(values, shape, Options(4, {80}));
  EXPECT_EQ(ExpandedTable(entries), values);
  const CodedTable mean = Quantised(values, shape, Options(1, {1}));
  EXPECT_EQ(std::set<uint32_t>(mean.codes.begin(), mean.codes.end()), std::set<uint32_t>{0});
  const CodedTable single = Quantised({3.5F}, {1, 1}, Options(1, {1}));
  EXPECT_EQ(single.codebook, std::vector<float>{3.5F});
}

TEST(ProductQuantise, ThreadsDoNotMatter) {
  const Shape shape = {1000, 8};
  const std::vector<float> values = RandomValues(8000, 6);
  ProductQuantisation options = Options(4, {16, 16, 16, 16});
  options.row_weights.assign(1000, 1.0F);
  options.row_weights[3] = 5;
  const CodedTable one = Quantised(values, shape, options);
  options.clustering.threads = 2;
  const CodedTable two = Quantised(values, shape, options);
  EXPECT_EQ(one.codes, two.codes);
  EXPECT_EQ(one.codebook, two.codebook);
  options.clustering.seed = 99;
  EXPECT_NE(Quantised(values, shape, options).codebook, one.codebook);
}

// A row whose weight exceeds all others by far is kept exactly, at all positions.
TEST(ProductQuantise, HeavyRowsAreKept) {
  const Shape shape = {100, 8};
  const std::vector<float> values = RandomValues(800, 7);
  for (const auto& pools : {std::vector<uint32_t>{16}, std::vector<uint32_t>{4, 4, 4, 4}}) {
    ProductQuantisation options = Options(4, pools);
    options.clustering.restarts = 10;
    options.row_weights.assign(100, 1.0F);
    options.row_weights[42] = 1e6F;
    const CodedTable table = Quantised(values, shape, options);
    std::vector<float> row(8);
    ExpandRow(table, 42, row);
    for (uint64_t i = 0; i < 8; ++i) EXPECT_NEAR(row[i], values[42 * 8 + i], 1e-3);
  }
}

TEST(ProductQuantise, ReportsProgressOfEachPool) {
  ProductQuantisation options = Options(2, {4, 4});
  std::set<uint64_t> pools;
  uint64_t steps = 0;
  options.progress = [&](uint64_t pool, const KMeansProgress&) { pools.insert(pool), ++steps; };
  Quantised(RandomValues(200, 8), {50, 4}, options);
  EXPECT_EQ(pools, (std::set<uint64_t>{0, 1}));
  EXPECT_GE(steps, 6U);
}

TEST(ProductQuantise, RefusesWhatDoesNotFit) {
  const std::vector<float> values(8, 1.0F);
  const auto refusal = [&](const Shape& shape, const ProductQuantisation& options) {
    return ProductQuantise(values, shape, options).status().message();
  };
  EXPECT_EQ(refusal({2, 4}, Options(3, {4})),
            "cannot product-quantise: positions: expected a divisor of 4 columns, found 3");
  EXPECT_EQ(refusal({3, 4}, Options(2, {2})),
            "cannot product-quantise: values: expected [3, 4] entries, found 8");
  EXPECT_EQ(refusal({2, 4}, Options(2, {2, 0})),
            "cannot product-quantise: pool 1: expected 1 to 2 sub-vectors, found 0");
  // More sub-vectors than draws.
  EXPECT_EQ(refusal({2, 4}, Options(2, {2, 3})),
            "cannot product-quantise: pool 1: expected 1 to 2 sub-vectors, found 3");
  EXPECT_EQ(refusal({2, 4}, Options(2, {5})),
            "cannot product-quantise: pool 0: expected 1 to 4 sub-vectors, found 5");
  EXPECT_NE(refusal({8}, Options(2, {2})), "");
  EXPECT_NE(refusal({2, 4}, Options(0, {2})), "");
  EXPECT_NE(refusal({uint64_t{1} << 33, uint64_t{1} << 33}, Options(1, {2})), "");
  ProductQuantisation options = Options(2, {2});
  options.row_weights = {1};
  EXPECT_EQ(refusal({2, 4}, options),
            "cannot product-quantise: weights: expected 2, one for each row, found 1");
  std::vector<float> hostile = values;
  hostile[7] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(ProductQuantise(hostile, {2, 4}, Options(2, {1, 1})).status().code(),
            KINGLET_NOT_FINITE);
}

}  // namespace
}  // namespace kinglet::product_quantise_test

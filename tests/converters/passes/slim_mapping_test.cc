#include "converters/passes/slim_mapping.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>

#include "converters/passes/reconstruction.h"
#include "converters/passes/sub_vectors.h"
#include "converters/splitmix.h"
#include "format/hashed_codes.h"

namespace kinglet::slim_mapping_test {
namespace {

std::vector<float> RandomValues(uint64_t count, uint64_t seed) {
  SplitMix64 random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = random.Signed();
  return values;
}

std::vector<uint32_t> Shuffled(const Shape& shape, uint64_t positions,
                               const std::vector<uint32_t>& pools, uint64_t seed) {
  const Result<std::vector<uint32_t>> codes = ShuffledCodes(shape, positions, pools, seed);
  EXPECT_TRUE(codes.ok()) << codes.status().message();
  return codes.ok() ? *codes : std::vector<uint32_t>();
}

// Expected codes come from a Python program that follows the header's description. The first case
// has the shape of the paper's example: 4 words, 2 positions, 3 sub-vectors.
TEST(ShuffledCodes, FollowTheDescription) {
  EXPECT_EQ(Shuffled({4, 6}, 2, {3}, 7), (std::vector<uint32_t>{1, 1, 0, 1, 2, 2, 0, 0}));
  EXPECT_EQ(Shuffled({5, 6}, 2, {3, 2}, 9), (std::vector<uint32_t>{2, 1, 1, 0, 0, 0, 1, 0, 0, 1}));
}

// All sub-vectors occur equally often, give or take one.
void ExpectUniform(std::vector<uint32_t> codes, uint32_t pool) {
  std::vector<uint64_t> uses(pool);
  for (const uint32_t code : codes) {
    ASSERT_LT(code, pool);
    ++uses[code];
  }
  const auto [fewest, most] = std::minmax_element(uses.begin(), uses.end());
  EXPECT_LE(*most - *fewest, 1U);
}

TEST(ShuffledCodes, AreUniform) {
  for (const uint64_t positions : {1U, 2U, 4U, 12U}) {  // 1: complete rows; 12: single entries
    for (const uint32_t pool : {1U, 2U, 7U, 31U}) {     // 7 does not divide 31 * positions
      ExpectUniform(Shuffled({31, 12}, positions, {pool}, 5), pool);
    }
    const std::vector<uint32_t> pools = EvenPools(50, positions);
    if (pools[0] > 31) continue;
    const std::vector<uint32_t> codes = Shuffled({31, 12}, positions, pools, 5);
    ASSERT_EQ(codes.size(), 31 * positions);
    for (uint64_t position = 0; position < positions; ++position) {
      std::vector<uint32_t> own;
      for (uint64_t row = 0; row < 31; ++row) own.push_back(codes[row * positions + position]);
      ExpectUniform(own, pools[position]);
    }
  }
}

TEST(ShuffledCodes, TheSeedDecides) {
  EXPECT_EQ(Shuffled({100, 8}, 4, {50}, 3), Shuffled({100, 8}, 4, {50}, 3));
  EXPECT_NE(Shuffled({100, 8}, 4, {50}, 3), Shuffled({100, 8}, 4, {50}, 4));
  // Pools of equal size get different lists.
  const std::vector<uint32_t> codes = Shuffled({100, 8}, 2, {10, 10}, 3);
  uint64_t equal = 0;
  for (uint64_t row = 0; row < 100; ++row) equal += codes[2 * row] == codes[2 * row + 1];
  EXPECT_LT(equal, 30U);
}

TEST(HashedCodes, AreHashedCode) {
  const std::vector<uint32_t> shared = {40}, own = {5, 7, 9};
  const auto one = HashedCodes({20, 6}, 3, shared, 11), many = HashedCodes({20, 6}, 3, own, 11);
  ASSERT_TRUE(one.ok() && many.ok());
  for (uint32_t word = 0; word < 20; ++word) {
    for (uint32_t position = 0; position < 3; ++position) {
      EXPECT_EQ((*one)[word * 3 + position], HashedCode(11, word, position, 40));
      EXPECT_EQ((*many)[word * 3 + position], HashedCode(11, word, position, own[position]));
    }
  }
}

// At the least squared error its derivative by each sub-vector is 0.
TEST(FitSubVectors, LeavesNoGradient) {
  const Shape shape = {60, 12};
  const std::vector<float> values = RandomValues(60 * 12, 4);
  for (const auto& pools : {std::vector<uint32_t>{25}, std::vector<uint32_t>{10, 7, 1, 4}}) {
    const std::vector<uint32_t> codes = Shuffled(shape, 4, pools, 1);
    const Result<CodedTable> table = FitSubVectors(values, shape, 4, pools, codes, 1);
    ASSERT_TRUE(table.ok()) << table.status().message();
    EXPECT_EQ(table->rows, 60U);
    EXPECT_EQ(table->length, 3U);
    EXPECT_EQ(table->pools, pools);
    EXPECT_EQ(table->codes, codes);
    std::vector<double> gradient(table->codebook.size());
    for (uint64_t row = 0; row < 60; ++row) {
      uint64_t first = 0;
      for (uint64_t position = 0; position < 4; ++position) {
        for (uint64_t i = 0; i < 3; ++i) {
          const uint64_t entry = (first + codes[row * 4 + position]) * 3 + i;
          gradient[entry] +=
              double{values[row * 12 + position * 3 + i]} - double{table->codebook[entry]};
        }
        if (pools.size() > 1) first += pools[position];
      }
    }
    for (const double entry : gradient) EXPECT_NEAR(entry, 0, 1e-5);
    for (const size_t threads : {2U, 5U}) {
      const Result<CodedTable> again = FitSubVectors(values, shape, 4, pools, codes, threads);
      ASSERT_TRUE(again.ok());
      EXPECT_EQ(again->codebook, table->codebook);
    }
  }
}

// FitSubVectors recovers a table from its rows and its mapping.
TEST(FitSubVectors, FindsSubVectorsAgain) {
  CodedTable slim;
  slim.rows = 200;
  slim.positions = 4;
  slim.length = 2;
  slim.pools = {30};
  slim.codebook = RandomValues(60, 1);
  slim.codes = Shuffled({200, 8}, 4, slim.pools, 2);
  const Result<CodedTable> again =
      FitSubVectors(ExpandedTable(slim), {200, 8}, 4, slim.pools, slim.codes, 1);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->codebook, slim.codebook);
}

// HashedNets: sub-vectors of one entry.
TEST(FitSubVectors, SubVectorsOfOneEntry) {
  const Shape shape = {30, 6};
  const std::vector<float> values = RandomValues(180, 3);
  const auto codes = HashedCodes(shape, 6, std::vector<uint32_t>{20}, 1);
  ASSERT_TRUE(codes.ok());
  const Result<CodedTable> table = FitSubVectors(values, shape, 6, {20}, *codes, 1);
  ASSERT_TRUE(table.ok());
  EXPECT_EQ(table->length, 1U);
  for (uint32_t code = 0; code < 20; ++code) {
    double sum = 0, count = 0;
    for (uint64_t i = 0; i < 180; ++i) {
      if ((*codes)[i] == code) sum += double{values[i]}, ++count;
    }
    EXPECT_FLOAT_EQ(table->codebook[code], count > 0 ? static_cast<float>(sum / count) : 0.0F);
  }
}

TEST(FitSubVectors, RefusesWhatDoesNotFit) {
  const Shape shape = {2, 4};
  const std::vector<float> values(8, 1.0F);
  const auto refusal = [&](const std::vector<float>& given, const std::vector<uint32_t>& pools,
                           const std::vector<uint32_t>& codes, size_t threads) {
    return FitSubVectors(given, shape, 2, pools, codes, threads).status().message();
  };
  EXPECT_EQ(refusal(values, {3}, {0, 1, 2, 0}, 1), "");
  EXPECT_EQ(refusal(values, {3}, {0, 1, 2, 3}, 1),
            "cannot map to sub-vectors: row 1, position 1: expected a code below 3, found 3");
  EXPECT_EQ(refusal(values, {2, 1}, {0, 0, 1, 1}, 1),
            "cannot map to sub-vectors: row 1, position 1: expected a code below 1, found 1");
  EXPECT_EQ(refusal(values, {3}, {0, 1, 2}, 1),
            "cannot map to sub-vectors: codes: expected 4, found 3");
  EXPECT_EQ(refusal({1, 2, 3}, {3}, {0, 1, 2, 0}, 1),
            "cannot map to sub-vectors: values: expected [2, 4] entries, found 3");
  EXPECT_EQ(refusal(values, {3}, {0, 1, 2, 0}, 0),
            "cannot map to sub-vectors: threads: expected at least 1, found 0");
  std::vector<float> hostile = values;
  hostile[5] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(refusal(hostile, {3}, {0, 1, 2, 0}, 1),
            "cannot map to sub-vectors: entry 5: expected a finite number, found inf");
  // Fewer sub-vectors than positions in disjoint pools, and more rows than memory could hold.
  EXPECT_FALSE(ShuffledCodes({4, 4}, 4, EvenPools(3, 4), 1).ok());
  EXPECT_FALSE(HashedCodes({4, 4}, 3, std::vector<uint32_t>{2}, 1).ok());
  EXPECT_FALSE(HashedCodes({uint64_t{1} << 62, 4}, 4, std::vector<uint32_t>{2}, 1).ok());
  EXPECT_EQ(ShuffledCodes({uint64_t{1} << 31, 4}, 4, std::vector<uint32_t>{2}, 1).status().code(),
            KINGLET_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace kinglet::slim_mapping_test

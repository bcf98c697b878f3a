#include "converters/passes/sub_vectors.h"

#include <gtest/gtest.h>

#include <numeric>

#include "format/limits.h"

namespace kinglet::sub_vectors_test {
namespace {

TEST(EvenPools, DifferByOneAtMost) {
  EXPECT_EQ(EvenPools(12, 4), (std::vector<uint32_t>{3, 3, 3, 3}));
  EXPECT_EQ(EvenPools(14, 4), (std::vector<uint32_t>{4, 4, 3, 3}));
  EXPECT_EQ(EvenPools(1, 1), (std::vector<uint32_t>{1}));
  EXPECT_EQ(EvenPools(2, 3), (std::vector<uint32_t>{1, 1, 0}));
  // The output layer of the paper's One Billion Word model.
  const std::vector<uint32_t> pools = EvenPools(793471, 8);
  EXPECT_EQ(pools.front(), 99184U);
  EXPECT_EQ(pools.back(), 99183U);
  EXPECT_EQ(std::accumulate(pools.begin(), pools.end(), 0U), 793471U);
}

TEST(SubVectorsOfPool, AreThePositionsParts) {
  std::vector<float> values(3 * 4);
  std::iota(values.begin(), values.end(), 0.0F);
  const VectorsView second = SubVectorsOfPool(values, {3, 4}, 2, 2, 1);
  EXPECT_EQ(second.count, 3U);
  EXPECT_EQ(second.length, 2U);
  EXPECT_EQ(second[0][0], 2);
  EXPECT_EQ(second[2][1], 11);
  const VectorsView all = SubVectorsOfPool(values, {3, 4}, 2, 1, 0);
  EXPECT_EQ(all.count, 6U);
  for (uint64_t v = 0; v < 6; ++v) EXPECT_EQ(all[v][0], static_cast<float>(2 * v));
}

std::string Refusal(const Shape& shape, uint64_t positions, const std::vector<uint32_t>& pools) {
  const Status status = CheckPools("cannot", shape, positions, pools);
  EXPECT_EQ(status.code(), status.ok() ? KINGLET_OK : KINGLET_INVALID_ARGUMENT);
  return status.message();
}

TEST(CheckPools, SaysWhatIsWrong) {
  EXPECT_EQ(Refusal({5, 6}, 3, {4}), "");
  EXPECT_EQ(Refusal({5, 6}, 3, {15}), "");
  EXPECT_EQ(Refusal({5, 6}, 3, {5, 1, 2}), "");
  EXPECT_EQ(Refusal({1, 1}, 1, {1}), "");
  EXPECT_EQ(Refusal({5, 6}, 6, {1}), "");
  EXPECT_EQ(Refusal({5, 6}, 4, {4}), "cannot: positions: expected a divisor of 6 columns, found 4");
  EXPECT_EQ(Refusal({5, 6}, 0, {4}), "cannot: positions: expected a divisor of 6 columns, found 0");
  EXPECT_EQ(Refusal({5, 6}, 12, {4}),
            "cannot: positions: expected a divisor of 6 columns, found 12");
  EXPECT_EQ(Refusal({5, 6}, 3, {4, 4}),
            "cannot: pools: expected one, or one for each of 3 positions, found 2");
  EXPECT_EQ(Refusal({5, 6}, 3, {}),
            "cannot: pools: expected one, or one for each of 3 positions, found 0");
  EXPECT_EQ(Refusal({5, 6}, 3, {4, 0, 4}), "cannot: pool 1: expected 1 to 5 sub-vectors, found 0");
  EXPECT_EQ(Refusal({5, 6}, 3, {4, 4, 6}), "cannot: pool 2: expected 1 to 5 sub-vectors, found 6");
  EXPECT_EQ(Refusal({5, 6}, 3, {16}), "cannot: pool 0: expected 1 to 15 sub-vectors, found 16");
  for (const Shape& shape : {Shape{},
                             {6},
                             {0, 6},
                             {5, 0},
                             {kMaxDimension + 1, 1},
                             {uint64_t{1} << 33, uint64_t{1} << 33},
                             {kMaxDimension, 1 << 20}}) {
    EXPECT_EQ(Refusal(shape, 1, {1}),
              "cannot: shape: expected a matrix of 1 to 2^40 entries, found " + ShapeText(shape));
  }
}

}  // namespace
}  // namespace kinglet::sub_vectors_test

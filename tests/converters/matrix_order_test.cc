#include "converters/matrix_order.h"

#include <gtest/gtest.h>

#include <vector>

namespace kinglet::matrix_order_test {
namespace {

TEST(Transposed, TransposesEachMatrix) {
  // Two matrices [2, 3].
  const std::vector<float> values = {1, 2, 3, 4, 5, 6, 10, 20, 30, 40, 50, 60};
  EXPECT_EQ(Transposed(values, 2, 3),
            (std::vector<float>{1, 4, 2, 5, 3, 6, 10, 40, 20, 50, 30, 60}));
  EXPECT_EQ(Transposed({}, 2, 3), std::vector<float>());
}

// Queries, keys and values of two heads of two rows each, two columns.
TEST(RowsByHead, InterleavesTheParts) {
  const std::vector<float> values = {1,  2,  3,  4,  5,  6,  7,  8,    // queries
                                     11, 12, 13, 14, 15, 16, 17, 18,   // keys
                                     21, 22, 23, 24, 25, 26, 27, 28};  // values
  const uint64_t equal[] = {1, 1, 1}, one[] = {1};
  EXPECT_EQ(RowsByHead(values, 2, equal),
            (std::vector<float>{1, 2, 3, 4, 11, 12, 13, 14, 21, 22, 23, 24,  //
                                5, 6, 7, 8, 15, 16, 17, 18, 25, 26, 27, 28}));
  EXPECT_EQ(RowsByHead(values, 1, equal), values);
  EXPECT_EQ(RowsByHead(values, 4, one), values);
  EXPECT_EQ(RowsByHead({}, 2, equal), std::vector<float>());
  // Two heads; a row of queries and a row of keys each, two rows of values.
  const uint64_t sizes[] = {1, 1, 2};
  EXPECT_EQ(RowsByHead(std::vector<float>{1, 2, 11, 12, 21, 22, 23, 24}, 2, sizes),
            (std::vector<float>{1, 11, 21, 22, 2, 12, 23, 24}));
}

}  // namespace
}  // namespace kinglet::matrix_order_test

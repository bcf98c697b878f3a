#include "converters/passes/ordered_products.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "tests/support/model_builder.h"

namespace kinglet::ordered_products_test {
namespace {

std::vector<double> Random(size_t count, uint64_t seed) {
  TestRandom random(seed);
  std::vector<double> values(count);
  for (double& value : values) value = double{random.Signed()} * double{random.Signed()};
  return values;
}

// Bit for bit the sums that three loops add one by one, with any number of threads, and nothing
// outside the part is written.
TEST(AddProducts, HasTheBitsOfLoops) {
  struct Sizes {
    size_t rows, columns, depth;
  };
  for (const auto& [rows, columns, depth] : std::vector<Sizes>{
           {1, 1, 1}, {0, 5, 3}, {3, 7, 0}, {5, 3, 64}, {33, 66, 65}, {70, 301, 130}}) {
    const size_t stride = columns + 3;
    const std::vector<double> a = Random(depth * (rows + 2), 1), b = Random(depth * stride, 2);
    const std::vector<double> before = Random(rows * stride, 3);
    for (const double sign : {1.0, -1.0}) {
      std::vector<double> expected = before;
      for (size_t k = 0; k < depth; ++k) {
        for (size_t i = 0; i < rows; ++i) {
          for (size_t j = 0; j < columns; ++j) {
            expected[i * stride + j] += sign * (a[k * (rows + 2) + i] * b[k * stride + j]);
          }
        }
      }
      for (const size_t threads : {1, 3}) {
        std::vector<double> found = before;
        AddProducts(sign > 0 ? ProductSign::kPlus : ProductSign::kMinus, rows, columns, depth,
                    {a.data(), rows + 2}, {b.data(), stride}, {found.data(), stride}, threads);
        EXPECT_EQ(found, expected) << rows << " " << columns << " " << depth << " " << threads;
      }
    }
  }
}

}  // namespace
}  // namespace kinglet::ordered_products_test

#include "converters/passes/symmetric_eigen.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "converters/splitmix.h"

namespace kinglet {
namespace {

std::vector<double> RandomSymmetric(size_t size, uint64_t seed) {
  SplitMix64 random(seed);
  std::vector<double> matrix(size * size);
  for (size_t i = 0; i < size; ++i) {
    for (size_t j = i; j < size; ++j) {
      matrix[i * size + j] = matrix[j * size + i] = 2 * random.Unit() - 1;
    }
  }
  return matrix;
}

// A v = value * v for each pair, vectors are orthonormal, and values fall.
void ExpectDecomposes(const std::vector<double>& matrix, size_t size, double scale = 1) {
  const auto found = DecomposeSymmetric(matrix, size);
  ASSERT_TRUE(found.ok()) << found.status().message();
  ASSERT_EQ(found->values.size(), size);
  ASSERT_EQ(found->vectors.size(), size * size);
  EXPECT_TRUE(std::is_sorted(found->values.rbegin(), found->values.rend()));
  const double tolerance = 1e-14 * static_cast<double>(size);
  for (size_t a = 0; a < size; ++a) {
    const double* vector = found->vectors.data() + a * size;
    for (size_t i = 0; i < size; ++i) {
      double product = 0;
      for (size_t j = 0; j < size; ++j) product += matrix[i * size + j] * vector[j];
      EXPECT_NEAR(product / scale, found->values[a] * vector[i] / scale, tolerance);
    }
    for (size_t b = 0; b < size; ++b) {
      double product = 0;
      for (size_t j = 0; j < size; ++j) product += vector[j] * found->vectors[b * size + j];
      EXPECT_NEAR(product, a == b ? 1 : 0, tolerance);
    }
  }
}

TEST(DecomposeSymmetric, RandomMatricesOfManySizes) {
  for (const size_t size : {1u, 2u, 3u, 4u, 9u, 10u, 17u, 64u}) {
    ExpectDecomposes(RandomSymmetric(size, size), size);
  }
}

TEST(DecomposeSymmetric, ReadsTheUpperTriangleOnly) {
  std::vector<double> matrix = RandomSymmetric(5, 1);
  const auto expected = DecomposeSymmetric(matrix, 5);
  for (size_t i = 0; i < 5; ++i) {
    for (size_t j = 0; j < i; ++j) matrix[i * 5 + j] = NAN;
  }
  const auto found = DecomposeSymmetric(matrix, 5);
  ASSERT_TRUE(expected.ok() && found.ok());
  EXPECT_EQ(found->values, expected->values);
  EXPECT_EQ(found->vectors, expected->vectors);
}

TEST(DecomposeSymmetric, KnownEigenvalues) {
  const auto two = DecomposeSymmetric({2, 1, 1, 2}, 2);
  ASSERT_TRUE(two.ok());
  EXPECT_NEAR(two->values[0], 3, 1e-15);
  EXPECT_NEAR(two->values[1], 1, 1e-15);
  // Second differences: 2 - 2 cos(pi i / (n + 1)).
  constexpr size_t kSize = 20;
  std::vector<double> matrix(kSize * kSize);
  for (size_t i = 0; i < kSize; ++i) {
    matrix[i * kSize + i] = 2;
    if (i + 1 < kSize) matrix[i * kSize + i + 1] = matrix[(i + 1) * kSize + i] = -1;
  }
  const auto found = DecomposeSymmetric(matrix, kSize);
  ASSERT_TRUE(found.ok());
  for (size_t i = 0; i < kSize; ++i) {
    const double angle = std::acos(-1.0) * static_cast<double>(kSize - i) / (kSize + 1);
    EXPECT_NEAR(found->values[i], 2 - 2 * std::cos(angle), 1e-14);
  }
}

// Equal eigenvalues, zeros, rank one, and entries near the ends of double's range.
TEST(DecomposeSymmetric, DegenerateAndExtreme) {
  ExpectDecomposes(std::vector<double>(49), 7);
  ExpectDecomposes(std::vector<double>(49, 1.0), 7);
  std::vector<double> identity(49);
  for (size_t i = 0; i < 7; ++i) identity[i * 8] = 3;
  ExpectDecomposes(identity, 7);
  for (const double scale : {1e-140, 1e140}) {
    std::vector<double> matrix = RandomSymmetric(12, 3);
    for (double& entry : matrix) entry *= scale;
    ExpectDecomposes(matrix, 12, scale);
  }
}

TEST(DecomposeSymmetric, NumbersThatAreNotFinite) {
  std::vector<double> matrix = RandomSymmetric(6, 2);
  matrix[3] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(DecomposeSymmetric(matrix, 6).status().code(), KINGLET_INTERNAL);
}

}  // namespace
}  // namespace kinglet

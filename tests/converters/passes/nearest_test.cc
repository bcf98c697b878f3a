#include "converters/passes/nearest.h"

#include <gtest/gtest.h>

#include <vector>

#include "converters/splitmix.h"

namespace kinglet::nearest_test {
namespace {

std::vector<float> RandomValues(uint64_t count, uint64_t seed) {
  SplitMix64 random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = random.Signed();
  return values;
}

double SquaredDistance(const float* a, const float* b, uint64_t length) {
  double sum = 0;
  for (uint64_t i = 0; i < length; ++i) sum += (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
  return sum;
}

// Numbers of centroids and vectors just below and above the sizes of panels and tiles.
TEST(NearestCentroids, FindsWhatADoubleSearchFinds) {
  for (const uint64_t length : {1U, 2U, 7U, 16U, 33U}) {
    for (const uint64_t centroids : {1U, 2U, 15U, 16U, 17U, 50U}) {
      for (const uint64_t count : {1U, 2U, 3U, 63U, 64U, 65U, 130U}) {
        const std::vector<float> table = RandomValues(centroids * length, 100 + length);
        const std::vector<float> vectors = RandomValues(count * length, count);
        std::vector<uint32_t> codes(count, 12345);
        NearestCentroids(table, centroids, length).Find(vectors.data(), codes, 1);
        for (uint64_t v = 0; v < count; ++v) {
          const float* vector = vectors.data() + v * length;
          double nearest = 1e30;
          for (uint64_t c = 0; c < centroids; ++c) {
            nearest = std::min(nearest, SquaredDistance(vector, &table[c * length], length));
          }
          ASSERT_LT(codes[v], centroids);
          EXPECT_LE(SquaredDistance(vector, &table[codes[v] * length], length), nearest + 1e-5);
        }
        for (const size_t threads : {2U, 5U}) {
          std::vector<uint32_t> again(count);
          NearestCentroids(table, centroids, length).Find(vectors.data(), again, threads);
          EXPECT_EQ(again, codes);
        }
      }
    }
  }
}

TEST(NearestCentroids, TheFirstOfEquallyNearOnes) {
  // 40 centroids at 1 and one at -1; and all 41 at the same point.
  std::vector<float> table(41, 1.0F);
  table[20] = -1;
  const std::vector<float> vectors = {1, -1, 0, 5};
  std::vector<uint32_t> codes(4);
  NearestCentroids(table, 41, 1).Find(vectors.data(), codes, 1);
  EXPECT_EQ(codes, (std::vector<uint32_t>{0, 20, 0, 0}));
  table[0] = 3;
  NearestCentroids(table, 41, 1).Find(vectors.data(), codes, 1);
  EXPECT_EQ(codes, (std::vector<uint32_t>{1, 20, 1, 0}));
}

TEST(NearestCentroids, NoVectors) {
  const std::vector<float> table = {1, 2};
  NearestCentroids(table, 1, 2).Find(nullptr, {}, 3);
}

}  // namespace
}  // namespace kinglet::nearest_test

#include "converters/passes/k_means.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "converters/splitmix.h"

namespace kinglet::k_means_test {
namespace {

std::vector<float> RandomValues(uint64_t count, uint64_t seed) {
  SplitMix64 random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = random.Signed();
  return values;
}

VectorsView Adjacent(const std::vector<float>& values, uint64_t length) {
  return {values.data(), values.size() / length, length, length};
}

// The weighted squared error of a clustering, computed without centroids: for each cluster and
// entry, sum w x^2 - (sum w x)^2 / sum w.
double ErrorOf(const VectorsView& vectors, const std::vector<uint32_t>& codes, uint64_t clusters,
               const std::vector<float>& weights = {}) {
  double error = 0;
  for (uint64_t c = 0; c < clusters; ++c) {
    double total = 0;
    for (uint64_t v = 0; v < vectors.count; ++v) {
      if (codes[v] == c) total += weights.empty() ? 1 : double{weights[v]};
    }
    if (total == 0) continue;
    for (uint64_t i = 0; i < vectors.length; ++i) {
      double sum = 0, squares = 0;
      for (uint64_t v = 0; v < vectors.count; ++v) {
        if (codes[v] != c) continue;
        const double weight = weights.empty() ? 1 : double{weights[v]};
        const double entry{vectors[v][i]};
        sum += weight * entry;
        squares += weight * entry * entry;
      }
      error += squares - sum * sum / total;
    }
  }
  return error;
}

// The smallest error of all possible clusterings.
double Optimum(const VectorsView& vectors, uint32_t clusters,
               const std::vector<float>& weights = {}) {
  std::vector<uint32_t> codes(vectors.count);
  double best = std::numeric_limits<double>::infinity();
  for (;;) {
    best = std::min(best, ErrorOf(vectors, codes, clusters, weights));
    uint64_t v = 0;
    while (v < vectors.count && ++codes[v] == clusters) codes[v++] = 0;
    if (v == vectors.count) return best;
  }
}

KMeansOptions Options(uint64_t seed, uint64_t restarts) {
  KMeansOptions options;
  options.seed = seed;
  options.restarts = restarts;
  return options;
}

TEST(KMeans, FindsTheOptimumOfTinySets) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const std::vector<float> values = RandomValues(8 * 2, seed);
    std::vector<float> weights = RandomValues(8, seed + 100);
    for (float& weight : weights) weight += 1;
    const VectorsView vectors = Adjacent(values, 2);
    for (const auto& given : {std::vector<float>{}, weights}) {
      const Result<Clustering> found = KMeans(vectors, 3, given, Options(seed, 50));
      ASSERT_TRUE(found.ok()) << found.status().message();
      EXPECT_NEAR(found->error, Optimum(vectors, 3, given), 1e-5);
      EXPECT_NEAR(found->error, ErrorOf(vectors, found->codes, 3, given), 1e-5);
      EXPECT_EQ(found->clusters, 3U);
    }
  }
}

TEST(KMeans, CentroidsAreTheMeansOfTheirVectors) {
  const std::vector<float> values = RandomValues(500 * 3, 4);
  const Result<Clustering> found = KMeans(Adjacent(values, 3), 7, {}, Options(1, 1));
  ASSERT_TRUE(found.ok());
  for (uint64_t c = 0; c < 7; ++c) {
    for (uint64_t i = 0; i < 3; ++i) {
      double sum = 0, members = 0;
      for (uint64_t v = 0; v < 500; ++v) {
        if (found->codes[v] != c) continue;
        sum += double{values[v * 3 + i]};
        ++members;
      }
      ASSERT_GT(members, 0);
      EXPECT_FLOAT_EQ(found->centroids[c * 3 + i], static_cast<float>(sum / members));
    }
  }
}

TEST(KMeans, FindsClustersThatAreThere) {
  // 20 tight clusters on a grid, with several offsets and magnitudes; float32 leaves 1e6 + 10 only
  // 4 bits below 1.
  SplitMix64 random(9);
  for (const double offset : {0.0, 1e6}) {
    for (const double unit : {1.0, 1e-38, 1e30}) {
      std::vector<float> values;
      for (uint64_t v = 0; v < 400; ++v) {
        for (const double centre : {static_cast<double>(v % 5), static_cast<double>(v % 20) / 5}) {
          const double noise = double{random.Signed()} * 0.1;
          values.push_back(static_cast<float>((offset + std::floor(centre) * 10 + noise) * unit));
        }
      }
      const Result<Clustering> found = KMeans(Adjacent(values, 2), 20, {}, Options(3, 5));
      ASSERT_TRUE(found.ok());
      for (uint64_t v = 0; v < 400; ++v) {
        EXPECT_EQ(found->codes[v], found->codes[v % 20]) << offset << " " << unit << " " << v;
      }
      const std::set<uint32_t> used(found->codes.begin(), found->codes.end());
      EXPECT_EQ(used.size(), 20U);
    }
  }
}

TEST(KMeans, MoreRestartsAreNeverWorse) {
  const std::vector<float> values = RandomValues(300 * 4, 8);
  double before = std::numeric_limits<double>::infinity(), first = 0;
  for (const uint64_t restarts : {1U, 2U, 3U, 8U, 20U}) {
    const Result<Clustering> found = KMeans(Adjacent(values, 4), 10, {}, Options(5, restarts));
    ASSERT_TRUE(found.ok());
    EXPECT_LE(found->error, before);
    before = found->error;
    if (restarts == 1) first = found->error;
  }
  EXPECT_LT(before, first);
}

TEST(KMeans, TheSeedAndNotTheThreadsDecide) {
  // More than two of the tiles of 1024 vectors that threads take.
  const std::vector<float> values = RandomValues(2500 * 5, 2);
  const std::vector<float> weights(2500, 0.5F);
  KMeansOptions options = Options(7, 2);
  const Result<Clustering> one = KMeans(Adjacent(values, 5), 33, weights, options);
  ASSERT_TRUE(one.ok());
  for (const size_t threads : {2U, 3U, 8U}) {
    options.threads = threads;
    const Result<Clustering> many = KMeans(Adjacent(values, 5), 33, weights, options);
    ASSERT_TRUE(many.ok());
    EXPECT_EQ(many->codes, one->codes);
    EXPECT_EQ(many->centroids, one->centroids);
    EXPECT_EQ(many->error, one->error);
  }
  options.seed = 8;
  const Result<Clustering> other = KMeans(Adjacent(values, 5), 33, weights, options);
  ASSERT_TRUE(other.ok());
  EXPECT_NE(other->codes, one->codes);
}

// Too many clusters for k-means++. The second half of the vectors repeats the first, so some start
// centroids are equal; their clusters run empty and take vectors that are far from all centroids.
TEST(KMeans, ManyClusters) {
  std::vector<float> values = RandomValues(4500, 3);
  values.insert(values.end(), values.begin(), values.begin() + 4500);
  KMeansOptions options = Options(1, 1);
  options.iterations = 100;
  options.tolerance = 0;
  const uint64_t clusters = 4400;
  ASSERT_GT(clusters, kMaxSpreadClusters);
  const Result<Clustering> found = KMeans(Adjacent(values, 1), clusters, {}, options);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(std::set<uint32_t>(found->codes.begin(), found->codes.end()).size(), clusters);
  double error = 0;
  for (uint64_t v = 0; v < 9000; ++v) {
    const double away = double{values[v]} - double{found->centroids[found->codes[v]]};
    error += away * away;
  }
  EXPECT_NEAR(found->error, error, 1e-3 * error);
  // 4,500 numbers in (-1, 1), of which 100 share: the mean gap is 2 / 4500.
  EXPECT_LT(found->error, 200 * 1e-6);
  options.threads = 2;
  EXPECT_EQ(KMeans(Adjacent(values, 1), clusters, {}, options)->codes, found->codes);
}

TEST(KMeans, AWeightCountsAsManyVectors) {
  // Three points on a line: with equal weights, then with weights 10, 1 and 0.
  const std::vector<float> line = {0, 1, 2.5F};
  const Result<Clustering> plain = KMeans(Adjacent(line, 1), 2, {}, Options(1, 20));
  const std::vector<float> weights = {10, 1, 0};
  const Result<Clustering> weighted = KMeans(Adjacent(line, 1), 2, weights, Options(1, 20));
  ASSERT_TRUE(plain.ok() && weighted.ok());
  EXPECT_EQ(plain->codes[0], plain->codes[1]);
  EXPECT_NE(plain->codes[0], plain->codes[2]);
  EXPECT_NEAR(plain->error, 0.5, 1e-6);
  // The third has weight 0: the first two get a centroid each, and it gets the nearer one.
  EXPECT_NE(weighted->codes[0], weighted->codes[1]);
  EXPECT_EQ(weighted->codes[1], weighted->codes[2]);
  EXPECT_EQ(weighted->error, 0);
}

TEST(KMeans, FewVectorsAndManyEqualOnes) {
  const std::vector<float> three = {1, 2, 3, 4, 5, 6};
  const Result<Clustering> own = KMeans(Adjacent(three, 2), 256, {}, Options(1, 1));
  ASSERT_TRUE(own.ok());
  EXPECT_EQ(own->clusters, 3U);
  EXPECT_EQ(own->centroids, three);
  EXPECT_EQ(own->codes, (std::vector<uint32_t>{0, 1, 2}));
  EXPECT_EQ(own->error, 0);
  // 90 vectors of which two are distinct, five clusters: three stay empty.
  std::vector<float> two;
  for (int v = 0; v < 90; ++v) two.push_back(v % 3 == 0 ? 0.1F : 0.7F);
  const Result<Clustering> repeated = KMeans(Adjacent(two, 1), 5, {}, Options(1, 2));
  ASSERT_TRUE(repeated.ok());
  EXPECT_EQ(repeated->clusters, 5U);
  for (int v = 0; v < 90; ++v) EXPECT_EQ(repeated->centroids[repeated->codes[v]], two[v]);
  EXPECT_EQ(std::count(repeated->centroids.begin(), repeated->centroids.end(), 0.0F), 3);
  const std::vector<float> equal(40, 0.3F);
  const Result<Clustering> one = KMeans(Adjacent(equal, 4), 1, {}, Options(1, 1));
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(one->centroids, std::vector<float>(4, 0.3F));
  EXPECT_EQ(one->error, 0);
}

TEST(KMeans, VectorsOfAWiderMatrix) {
  // Columns 1 and 2 of four; the others must not be read.
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> matrix = {nan, 1, 2, nan, nan, 1, 2, nan, nan, 9, 8, nan};
  const VectorsView middle = {matrix.data() + 1, 3, 2, 4};
  const Result<Clustering> found = KMeans(middle, 2, {}, Options(1, 1));
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ(found->codes[0], found->codes[1]);
  EXPECT_EQ(found->error, 0);
}

TEST(KMeans, ReportsEachIteration) {
  const std::vector<float> values = RandomValues(200 * 2, 6);
  KMeansOptions options = Options(1, 3);
  options.tolerance = 0;
  std::vector<KMeansProgress> steps;
  options.progress = [&](const KMeansProgress& step) { steps.push_back(step); };
  const Result<Clustering> found = KMeans(Adjacent(values, 2), 8, {}, options);
  ASSERT_TRUE(found.ok());
  ASSERT_FALSE(steps.empty());
  for (size_t s = 1; s < steps.size(); ++s) {
    if (steps[s].restart == steps[s - 1].restart) {
      EXPECT_EQ(steps[s].iteration, steps[s - 1].iteration + 1);
      EXPECT_LE(steps[s].error, steps[s - 1].error * (1 + 1e-6));
    } else {
      EXPECT_EQ(steps[s].restart, steps[s - 1].restart + 1);
      EXPECT_EQ(steps[s].iteration, 0U);
    }
    EXPECT_LE(found->error, steps[s].error * (1 + 1e-6));
  }
  EXPECT_EQ(steps.back().restart, 2U);
  options.iterations = 1;
  steps.clear();
  ASSERT_TRUE(KMeans(Adjacent(values, 2), 8, {}, options).ok());
  EXPECT_EQ(steps.size(), 3U);
}

TEST(KMeans, RefusesWhatItCannotCluster) {
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> good = {1, 2, 3, 4}, weights = {1, 1, 1, 1};
  const VectorsView vectors = Adjacent(good, 1);
  const auto code = [&](const VectorsView& from, uint64_t clusters, const std::vector<float>& given,
                        const KMeansOptions& options) {
    return KMeans(from, clusters, given, options).status().code();
  };
  EXPECT_EQ(code(vectors, 2, weights, {}), KINGLET_OK);
  for (const float hostile : {inf, -inf, std::numeric_limits<float>::quiet_NaN()}) {
    const std::vector<float> bad = {1, 2, hostile, 4};
    EXPECT_EQ(code(Adjacent(bad, 2), 2, {}, {}), KINGLET_NOT_FINITE);
    EXPECT_EQ(code(vectors, 2, bad, {}), KINGLET_NOT_FINITE);
  }
  const std::vector<float> bad = {1, 2, 3, inf};
  EXPECT_EQ(KMeans(Adjacent(bad, 2), 2, {}, {}).status().message(),
            "cannot cluster: entry 1 of vector 1: expected a finite number, found inf");
  EXPECT_EQ(code({}, 2, {}, {}), KINGLET_INVALID_ARGUMENT);
  EXPECT_EQ(code({good.data(), 4, 0, 1}, 2, {}, {}), KINGLET_INVALID_ARGUMENT);
  EXPECT_EQ(code(vectors, 0, {}, {}), KINGLET_INVALID_ARGUMENT);
  EXPECT_EQ(code(vectors, 2, {1, 1, 1}, {}), KINGLET_INVALID_ARGUMENT);
  EXPECT_EQ(code(vectors, 2, {1, 1, 1, -1}, {}), KINGLET_INVALID_ARGUMENT);
  EXPECT_EQ(code(vectors, 2, {0, 0, 0, 0}, {}), KINGLET_INVALID_ARGUMENT);
  for (const double tolerance : {-0.1, 1.0, std::nan("")}) {
    KMeansOptions options;
    options.tolerance = tolerance;
    EXPECT_EQ(code(vectors, 2, {}, options), KINGLET_INVALID_ARGUMENT);
  }
  for (const auto member : {&KMeansOptions::restarts, &KMeansOptions::iterations}) {
    KMeansOptions options;
    options.*member = 0;
    EXPECT_EQ(code(vectors, 2, {}, options), KINGLET_INVALID_ARGUMENT);
  }
  KMeansOptions options;
  options.threads = 0;
  EXPECT_EQ(code(vectors, 2, {}, options), KINGLET_INVALID_ARGUMENT);
}

// The largest finite values: differences overflow float32.
TEST(KMeans, HugeValues) {
  const float huge = std::numeric_limits<float>::max();
  const std::vector<float> values = {huge, -huge, huge, -huge, 0, huge};
  const Result<Clustering> found = KMeans(Adjacent(values, 1), 3, {}, Options(1, 4));
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->error, 0);
  for (uint64_t v = 0; v < 6; ++v) EXPECT_EQ(found->centroids[found->codes[v]], values[v]);
}

TEST(MeansOfClusters, EmptyOnesAreZero) {
  const std::vector<float> values = {1, 2, 3, 6};
  const std::vector<uint32_t> codes = {2, 2, 2, 0};
  EXPECT_EQ(MeansOfClusters(Adjacent(values, 1), codes, {}, 4, 2),
            (std::vector<float>{6, 0, 2, 0}));
  EXPECT_EQ(MeansOfClusters(Adjacent(values, 1), codes, std::vector<float>{0, 1, 3, 0}, 4, 3),
            (std::vector<float>{0, 0, 2.75F, 0}));
}

}  // namespace
}  // namespace kinglet::k_means_test

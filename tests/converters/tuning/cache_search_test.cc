#include "converters/tuning/cache_search.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace kinglet::cache_search_test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Checks that hold for every search and objective.
void ExpectSound(const CacheSearch& search, const CacheParameters& start,
                 const CacheObjective& objective) {
  ASSERT_FALSE(search.path.empty());
  EXPECT_EQ(search.path.front().parameters, start);
  EXPECT_TRUE(search.path.front().accepted);
  const SearchedPoint* best = nullptr;
  for (const SearchedPoint& point : search.path) {
    EXPECT_GT(point.parameters.lambda, 0);
    EXPECT_LT(point.parameters.lambda, 1);
    EXPECT_GT(point.parameters.theta, 0);
    EXPECT_TRUE(std::isfinite(point.parameters.theta));
    const double loss = objective(point.parameters);
    EXPECT_TRUE(point.loss == loss || (std::isnan(loss) && std::isnan(point.loss)));
    if (!point.accepted) continue;
    if (best != nullptr) {
      EXPECT_LT(point.loss, best->loss);
    }
    best = &point;
  }
  EXPECT_EQ(search.best, best->parameters);
  // No evaluated point is better than the result.
  for (const SearchedPoint& point : search.path) EXPECT_FALSE(point.loss < search.loss);
}

TEST(SearchCache, FindsTheMinimumOfAParabola) {
  for (const CacheParameters start : {kPublishedStart, CacheParameters{0.9, 0.5},
                                      CacheParameters{0.01, 0.0001}, CacheParameters{0.3, 0.02}}) {
    // In units of the minimum, with a mixed term: neither parameter can be found alone.
    const auto objective = [](const CacheParameters& at) {
      const double x = at.lambda / 0.3 - 1, y = at.theta / 0.02 - 1;
      return 4 + x * x + 2 * y * y + x * y;
    };
    const CacheSearch search = SearchCache(start, objective);
    ExpectSound(search, start, objective);
    // The last interval of either parameter was below 1 % of it, and both neighbours were worse.
    EXPECT_NEAR(search.best.lambda, 0.3, 0.3 * 0.01);
    EXPECT_NEAR(search.best.theta, 0.02, 0.02 * 0.01);
    EXPECT_NEAR(search.loss, 4, 4e-4);
  }
}

// The first turns, computed by hand from the published rules: intervals of 1/20, times 1.2 after a
// success and 0.5 after a failure, lambda before theta, the lower neighbour first.
TEST(SearchCache, TakesThePublishedSteps) {
  const CacheSearch search = SearchCache({0.1, 0.016}, [](const CacheParameters& at) {
    return std::fabs(at.lambda - 0.2) + std::fabs(at.theta - 0.016);
  });
  const struct {
    double lambda, theta;
    bool accepted;
  } expected[] = {
      {0.1, 0.016, true},                                  // start
      {0.095, 0.016, false},    {0.105, 0.016, true},      // lambda, interval 0.005
      {0.105, 0.0152, false},   {0.105, 0.0168, false},    // theta, interval 0.0008
      {0.099, 0.016, false},    {0.111, 0.016, true},      // lambda, step 0.006
      {0.111, 0.0156, false},   {0.111, 0.0164, false},    // theta, step 0.0004
      {0.1038, 0.016, false},   {0.1182, 0.016, true},     // lambda, step 0.0072
      {0.1182, 0.0158, false},  {0.1182, 0.0162, false},   // theta, step 0.0002
      {0.10956, 0.016, false},  {0.12684, 0.016, true},    // lambda, step 0.00864
      {0.12684, 0.0159, false}, {0.12684, 0.0161, false},  // theta, step 0.0001
  };
  ASSERT_GE(search.path.size(), std::size(expected));
  for (size_t i = 0; i < std::size(expected); ++i) {
    EXPECT_NEAR(search.path[i].parameters.lambda, expected[i].lambda, 1e-12) << i;
    EXPECT_NEAR(search.path[i].parameters.theta, expected[i].theta, 1e-12) << i;
    EXPECT_EQ(search.path[i].accepted, expected[i].accepted) << i;
  }
  EXPECT_NEAR(search.best.lambda, 0.2, 0.002);
  EXPECT_EQ(search.best.theta, 0.016);
}

TEST(SearchCache, OnAPlainItStaysWhereItIs) {
  const CacheSearch search = SearchCache({0.25, 0.5}, [](const CacheParameters&) { return 1.0; });
  EXPECT_EQ(search.best, (CacheParameters{0.25, 0.5}));
  // Steps of 1/20, 1/40, 1/80 and 1/160; the next would be below 1/200. Four points a round.
  EXPECT_EQ(search.path.size(), 1U + 4 * 4);
}

TEST(SearchCache, OfTwoEqualNeighboursTheLowerIsTaken) {
  const auto objective = [](const CacheParameters& at) {
    return -std::fabs(at.lambda - 0.5) - std::fabs(at.theta - 1);
  };
  const CacheSearch search = SearchCache({0.5, 1}, objective);
  ExpectSound(search, {0.5, 1}, objective);
  ASSERT_GE(search.path.size(), 5U);
  EXPECT_EQ(search.path[1].parameters.lambda, 0.475);
  EXPECT_TRUE(search.path[1].accepted);
  EXPECT_FALSE(search.path[2].accepted);
  EXPECT_EQ(search.path[3].parameters.theta, 0.95);
  EXPECT_TRUE(search.path[3].accepted);
  EXPECT_FALSE(search.path[4].accepted);
}

TEST(SearchCache, EndsInsideTheRangeWhereTheMinimumIsOutside) {
  for (const double lambda_slope : {-1.0, 1.0}) {
    for (const double theta_slope : {-1.0, 1.0}) {
      const auto objective = [&](const CacheParameters& at) {
        return lambda_slope * at.lambda + theta_slope * at.theta;
      };
      const CacheSearch search = SearchCache(kPublishedStart, objective);
      ExpectSound(search, kPublishedStart, objective);
      if (lambda_slope < 0) {
        EXPECT_GT(search.best.lambda, 0.99);
      }
      if (lambda_slope > 0) {
        EXPECT_LT(search.best.lambda, 0.01);
      }
      if (theta_slope < 0) {
        EXPECT_GT(search.best.theta, 1);
      }
      if (theta_slope > 0) {
        EXPECT_LT(search.best.theta, 0.001);
      }
    }
  }
}

TEST(SearchCache, NothingButABetterNumberIsTaken) {
  for (const double nothing : {std::nan(""), kInfinity}) {
    // Everywhere nothing.
    const CacheSearch search =
        SearchCache({0.25, 0.5}, [&](const CacheParameters&) { return nothing; });
    EXPECT_EQ(search.best, (CacheParameters{0.25, 0.5}));
    EXPECT_EQ(search.path.size(), 17U);
    EXPECT_FALSE(std::isfinite(search.loss));
    // Nothing but at the start and below.
    const auto objective = [&](const CacheParameters& at) {
      return at.lambda > 0.25 ? nothing : at.theta > 0.5 ? nothing : at.lambda * at.theta;
    };
    ExpectSound(SearchCache({0.25, 0.5}, objective), {0.25, 0.5}, objective);
  }
  // A finite loss is better than an infinite one.
  const CacheSearch search = SearchCache({0.25, 0.5}, [](const CacheParameters& at) {
    return at.lambda > 0.25 ? 1 + at.lambda : kInfinity;
  });
  EXPECT_TRUE(std::isfinite(search.loss));
}

TEST(SearchCache, TwiceTheSame) {
  const auto objective = [](const CacheParameters& at) {
    return std::log(at.lambda * at.lambda + 0.01) + std::sin(40 * at.theta) - at.lambda;
  };
  const CacheSearch a = SearchCache(kPublishedStart, objective);
  const CacheSearch b = SearchCache(kPublishedStart, objective);
  ASSERT_EQ(a.path.size(), b.path.size());
  for (size_t i = 0; i < a.path.size(); ++i) {
    EXPECT_EQ(a.path[i].parameters, b.path[i].parameters);
    EXPECT_EQ(a.path[i].loss, b.path[i].loss);
  }
}

}  // namespace
}  // namespace kinglet::cache_search_test

#include "runtime/queries/logit_threshold.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "converters/splitmix.h"

namespace kinglet::logit_threshold_test {
namespace {

// The least logit reaches the threshold, and the next smaller float does not.
template <class T>
void ExpectExact(T largest, const ClusterTerms<T>& terms, T threshold) {
  const T infinity = std::numeric_limits<T>::infinity();
  OperationTally tally;
  const T least = LogitThreshold(largest, terms, threshold, tally);
  EXPECT_GT(tally.Total(), 0);
  if (least == infinity) {
    EXPECT_LT(ref::TokenLogProbability(largest, terms), threshold);
    return;
  }
  EXPECT_LE(least, largest);
  EXPECT_GE(ref::TokenLogProbability(least, terms), threshold);
  const T below = std::nextafter(least, -infinity);
  if (std::isfinite(below) && least < largest) {
    EXPECT_FALSE(ref::TokenLogProbability(below, terms) >= threshold)
        << least << " for " << threshold;
  }
}

template <class T>
void ExpectExactThresholds() {
  const T infinity = std::numeric_limits<T>::infinity();
  SplitMix64 random(3);
  for (int i = 0; i < 2000; ++i) {
    ClusterTerms<T> terms{};
    const T largest = static_cast<T>(20 * random.Unit() - 10);
    terms.reference = random.Below(2) == 0 ? T{0} : largest;
    terms.log_sum = largest - terms.reference + static_cast<T>(12 * random.Unit());
    terms.parent = random.Below(2) == 0 ? T{0} : static_cast<T>(-8 * random.Unit());
    terms.keep = random.Below(2) == 0 ? -T{0} : static_cast<T>(-0.1);
    const T logit = largest - static_cast<T>(15 * random.Unit());
    const T own = ref::TokenLogProbability(logit, terms);
    ExpectExact(largest, terms, own);
    ExpectExact(largest, terms, std::nextafter(own, infinity));
    ExpectExact(largest, terms, static_cast<T>(-20 * random.Unit()));
    ExpectExact(largest, terms, T{1});
    // Below every token.
    OperationTally tally;
    EXPECT_EQ(LogitThreshold(largest, terms, -infinity, tally), std::numeric_limits<T>::lowest());
  }
}

TEST(LogitThreshold, IsTheLeastLogitThatReachesTheThreshold) {
  ExpectExactThresholds<float>();
  ExpectExactThresholds<double>();
}

}  // namespace
}  // namespace kinglet::logit_threshold_test

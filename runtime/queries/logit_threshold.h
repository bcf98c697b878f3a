// The smallest logit with which a cluster's tokens reach a probability: one comparison of a logit
// then replaces the computation of the token's log-probability.
#ifndef KINGLET_RUNTIME_QUERIES_LOGIT_THRESHOLD_H_
#define KINGLET_RUNTIME_QUERIES_LOGIT_THRESHOLD_H_

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/cluster_tokens.h"
#include "kernels/ref/cluster_tokens.h"
#include "runtime/accounting/operations.h"

namespace kinglet {

namespace logit_threshold {

template <class T>
using Bits = std::conditional_t<sizeof(T) == sizeof(uint32_t), uint32_t, uint64_t>;
template <class T>
inline constexpr Bits<T> kSign = Bits<T>{1} << (8 * sizeof(T) - 1);

// Maps floats to integers of the same order; -0 comes before +0.
template <class T>
Bits<T> Order(T x) {
  const auto bits = std::bit_cast<Bits<T>>(x);
  return (bits & kSign<T>) != 0 ? ~bits : bits | kSign<T>;
}
template <class T>
T OfOrder(Bits<T> order) {
  return std::bit_cast<T>((order & kSign<T>) != 0 ? order & ~kSign<T> : ~order);
}

}  // namespace logit_threshold

// The smallest logit with which a token has log p >= threshold before the neural cache is mixed in:
// for every logit x up to `largest`, the cluster's, log p >= threshold exactly if x >= the result.
// Infinity if no token reaches the threshold. log p does not decrease with the logit, because none
// of its operations does, however they are rounded. Adds the operations of the search to `tally`.
// REQUIRES: neither the terms nor the threshold are NaN.
template <class T>
T LogitThreshold(T largest, const ClusterTerms<T>& terms, T threshold, OperationTally& tally) {
  using logit_threshold::Bits;
  double tried = 0;
  const auto reaches = [&](Bits<T> order) {
    ++tried;
    return ref::TokenLogProbability(logit_threshold::OfOrder<T>(order), terms) >= threshold;
  };
  Bits<T> high = logit_threshold::Order(largest);
  T least_logit = std::numeric_limits<T>::infinity();
  if (reaches(high)) {
    // No token below the bound reaches the threshold, and the result is not far from the bound.
    const T bound = LeastLogit(terms, threshold);
    Bits<T> low =
        logit_threshold::Order(std::isinf(bound) ? std::numeric_limits<T>::lowest() : bound);
    low = std::min(low, high);
    if (reaches(low)) {
      high = low;
    } else {
      Bits<T> stride = 1;
      while (high - low > stride && !reaches(low + stride)) {
        low += stride;
        stride *= 2;
      }
      if (high - low > stride) high = low + stride;
      ++low;
    }
    while (low < high) {
      const Bits<T> middle = low + (high - low) / 2;
      if (reaches(middle)) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    least_logit = logit_threshold::OfOrder<T>(high);
  }
  // Each logit tried takes three sums or differences, a fourth for a model with a cache, and two
  // comparisons.
  tally += {0, 4 * tried, 2 * tried};
  return least_logit;
}

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_QUERIES_LOGIT_THRESHOLD_H_

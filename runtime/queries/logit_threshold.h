// The logit from which on a cluster's words reach a probability: one comparison of a logit then
// says what computing the word's log-probability would.
#ifndef KINGLET_RUNTIME_QUERIES_LOGIT_THRESHOLD_H_
#define KINGLET_RUNTIME_QUERIES_LOGIT_THRESHOLD_H_

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/cluster_words.h"
#include "kernels/ref/cluster_words.h"
#include "runtime/accounting/operations.h"

namespace kinglet {

namespace logit_threshold {

template <class T>
using Bits = std::conditional_t<sizeof(T) == sizeof(uint32_t), uint32_t, uint64_t>;
template <class T>
inline constexpr Bits<T> kSign = Bits<T>{1} << (8 * sizeof(T) - 1);

// Numbers in their order as integers in theirs; -0 comes before +0.
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

// Of the logits up to `largest`, the cluster's: the word of logit x, neural cache apart, has log p
// >= threshold exactly if x >= the cut; infinity if no word has. log p does not decrease with the
// logit, because none of its operations does, however they are rounded. Adds the operations of the
// search to `tally`. REQUIRES: the terms and the threshold are no NaN.
template <class T>
T LogitThreshold(T largest, const ClusterTerms<T>& terms, T threshold, OperationTally& tally) {
  using logit_threshold::Bits;
  double tried = 0;
  const auto reaches = [&](Bits<T> order) {
    ++tried;
    return ref::WordLogProbability(logit_threshold::OfOrder<T>(order), terms) >= threshold;
  };
  Bits<T> high = logit_threshold::Order(largest);
  T cut = std::numeric_limits<T>::infinity();
  if (reaches(high)) {
    // No word below the bound reaches the threshold, and the cut is not far from it.
    const T bound = LeastLogit(terms, threshold);
    Bits<T> low =
        logit_threshold::Order(std::isinf(bound) ? std::numeric_limits<T>::lowest() : bound);
    low = std::min(low, high);
    if (reaches(low)) {
      high = low;
    } else {
      Bits<T> step = 1;
      while (high - low > step && !reaches(low + step)) {
        low += step;
        step *= 2;
      }
      if (high - low > step) high = low + step;
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
    cut = logit_threshold::OfOrder<T>(high);
  }
  // Each takes three sums or differences, a fourth where a cache is mixed in, and two comparisons.
  tally += {0, 4 * tried, 2 * tried};
  return cut;
}

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_QUERIES_LOGIT_THRESHOLD_H_

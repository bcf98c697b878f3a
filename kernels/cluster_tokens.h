// From the logits of a head or tail cluster to its tokens' log-probabilities: rule 5 of
// docs/NUMERICS.md, the inner loops of runtime/queries. These functions are no nodes of the plan,
// because they write to the caller's memory.
#ifndef KINGLET_KERNELS_CLUSTER_TOKENS_H_
#define KINGLET_KERNELS_CLUSTER_TOKENS_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "kernels/functions.h"

namespace kinglet {

// log p of a token = min((logit - reference) - log_sum, 0) + parent + keep.
template <class T>
struct ClusterTerms {
  T reference, log_sum;  // of the cluster's logits (kernels/op.h, LogSumExp)
  T parent;              // log p of the cluster itself; 0 for the head
  T keep;                // log of the probability mass that a neural cache leaves to the softmax;
                         // without a cache -0, which changes no bit
};

// A lower bound of the logits whose tokens reach the threshold: no token with a smaller logit is as
// probable. Minus infinity if there is no bound. Why the bound is valid: log p is made of four
// operations, each of which never decreases as the logit grows. Each is off by at most 2^-24 of
// values no larger than `sizes`, and so are the operations that compute the bound.
template <class T>
T LeastLogit(const ClusterTerms<T>& terms, T threshold) {
  const T logit = threshold - terms.keep - terms.parent + terms.log_sum + terms.reference;
  const T sizes = std::abs(threshold) + std::abs(terms.keep) + std::abs(terms.parent) +
                  std::abs(terms.log_sum) + std::abs(terms.reference) + std::abs(logit);
  const T least = logit - (sizes * T(0x1p-19) + std::numeric_limits<T>::min());
  return std::isfinite(least) ? least : -std::numeric_limits<T>::infinity();
}

// Mixes a neural cache into the log-probabilities of the tokens that it contains:
//   log(keep * exp(log p) + lambda * (weight / total)), keep = 1 - lambda.
template <class T>
struct CacheTerms {
  T keep, lambda;
  T total;  // sum of the weights of all stored pairs, > 0
};

// A backend's functions on a cluster's tokens; all backends give the same bits. Logits are finite.
template <class T>
struct ClusterFunctions {
  // out[i] = log p of token i; out may be logits.
  void (*log_probabilities)(const T* logits, size_t n, const ClusterTerms<T>& terms, T* out);
  // Writes the i with log p >= threshold, ascending, to `places`, which has room for n + 16.
  // Returns how many there are.
  size_t (*at_least)(const T* logits, size_t n, const ClusterTerms<T>& terms, T threshold,
                     uint32_t* places);
  // Replaces log_probabilities[i], of a token whose weight in the cache is weights[i] > 0, by the
  // mixed log-probability.
  void (*mix)(const T* weights, size_t n, const CacheTerms<T>& terms, T* log_probabilities);
  // out[i] = exp(x[i]); out may be x.
  void (*exponentials)(const T* x, size_t n, T* out);
};

}  // namespace kinglet

#endif  // KINGLET_KERNELS_CLUSTER_TOKENS_H_

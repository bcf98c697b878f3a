// From the logits of an open cluster to its words' log-probabilities: rule 5 of docs/NUMERICS.md,
// the inner loops of runtime/distribution. Not steps of the plan, since they write to the caller's
// memory or to none.
#ifndef KINGLET_KERNELS_CLUSTER_WORDS_H_
#define KINGLET_KERNELS_CLUSTER_WORDS_H_

#include <cstddef>
#include <cstdint>

namespace kinglet {

// What turns a logit into a log-probability: ((logit - largest) - log_sum), at most 0, + parent,
// + keep.
template <class T>
struct ClusterTerms {
  T largest, log_sum;  // of the cluster's logits: max, log sum exp(x - max)
  T parent;            // log p of the cluster itself; 0 for the head
  T keep;              // what a neural cache leaves to words it does not hold; -0, which changes
                       // nothing, where none is mixed in
};

// What mixes a neural cache into the words it holds: log(keep * exp(log p) + lambda * (weight /
// total)), keep = 1 - lambda.
template <class T>
struct CacheTerms {
  T keep, lambda;
  T total;  // sum of the weights of all stored pairs, > 0
};

// A backend's way to do it; all give the same bits. Logits are finite.
template <class T>
struct ClusterFunctions {
  // out[i] = log p of word i.
  void (*log_probabilities)(const T* logits, size_t n, const ClusterTerms<T>& terms, T* out);
  // The i with log p >= threshold, ascending, to `places`, which has room for n + 16; returns their
  // number.
  size_t (*at_least)(const T* logits, size_t n, const ClusterTerms<T>& terms, T threshold,
                     uint32_t* places);
  // log_probabilities[i], of a word whose weight in the cache is weights[i] > 0, becomes the mixed
  // one.
  void (*mix)(const T* weights, size_t n, const CacheTerms<T>& terms, T* log_probabilities);
  // out[i] = exp(x[i]); out may be x.
  void (*exponentials)(const T* x, size_t n, T* out);
};

}  // namespace kinglet

#endif  // KINGLET_KERNELS_CLUSTER_WORDS_H_

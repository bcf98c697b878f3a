// The readable definition of kernels/cluster_tokens.h.
#ifndef KINGLET_KERNELS_REF_CLUSTER_TOKENS_H_
#define KINGLET_KERNELS_REF_CLUSTER_TOKENS_H_

#include <cstddef>
#include <cstdint>

#include "kernels/cluster_tokens.h"
#include "kernels/functions.h"

namespace kinglet::ref {

// log p before the cache is mixed in.
template <class T>
T SoftmaxLogProbability(T logit, const ClusterTerms<T>& terms) {
  const T within = (logit - terms.reference) - terms.log_sum;
  return terms.parent + (within < T{0} ? within : T{0});
}

template <class T>
T TokenLogProbability(T logit, const ClusterTerms<T>& terms) {
  return SoftmaxLogProbability(logit, terms) + terms.keep;
}

template <class T>
void TokenLogProbabilities(const T* logits, size_t n, const ClusterTerms<T>& terms, T* out) {
  for (size_t i = 0; i < n; ++i) out[i] = TokenLogProbability(logits[i], terms);
}

template <class T>
size_t TokensAtLeast(const T* logits, size_t n, const ClusterTerms<T>& terms, T threshold,
                     uint32_t* places) {
  size_t found = 0;
  for (size_t i = 0; i < n; ++i) {
    if (TokenLogProbability(logits[i], terms) >= threshold) {
      places[found++] = static_cast<uint32_t>(i);
    }
  }
  return found;
}

template <class T>
T MixedLogProbability(T log_probability, T weight, const CacheTerms<T>& terms) {
  return Log(terms.keep * Exp(log_probability) + terms.lambda * (weight / terms.total));
}

template <class T>
void MixTokens(const T* weights, size_t n, const CacheTerms<T>& terms, T* log_probabilities) {
  for (size_t i = 0; i < n; ++i) {
    log_probabilities[i] = MixedLogProbability(log_probabilities[i], weights[i], terms);
  }
}

template <class T>
void TokenExponentials(const T* x, size_t n, T* out) {
  for (size_t i = 0; i < n; ++i) out[i] = Exp(x[i]);
}

template <class T>
inline constexpr ClusterFunctions<T> kClusterFunctions = {
    TokenLogProbabilities<T>, TokensAtLeast<T>, MixTokens<T>, TokenExponentials<T>};

}  // namespace kinglet::ref

#endif  // KINGLET_KERNELS_REF_CLUSTER_TOKENS_H_

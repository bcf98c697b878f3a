// Questions about the next token, answered lazily and exactly. A cluster (the head or a tail) is
// computed when a question first needs it and remembered until the next token; the answer is always
// the number the full computation gives, bit for bit.
//
//   log p(w in head)   = (x_w - max) - log sum exp(x - max)
//   log p(w in tail c) = log p(c) + min(0, the same over the tail's logits)     so log p(w) <= log
//   p(c)
// With a neural cache of total weight > 0 and m(w) = share of the weight on pairs whose word is w:
//   m(w) = 0           log p(w) + log(1 - lambda)
//   m(w) > 0           log((1 - lambda) exp(log p(w)) + lambda m(w))
// Sources: Grave et al. 2017 (adaptive softmax), Grave et al. 2016 (neural cache);
// docs/NUMERICS.md, rule 5.
#ifndef KINGLET_RUNTIME_DISTRIBUTION_H_
#define KINGLET_RUNTIME_DISTRIBUTION_H_

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "runtime/execute.h"
#include "runtime/session.h"

namespace kinglet {

// T is the backend's real type.
template <class T>
class Distribution {
 public:
  Distribution(const Model& model, EmptyCache empty_cache);

  // A new token was processed: everything is to be computed again.
  void Invalidate();
  Result<T> LogProbability(Frame& frame, uint32_t id);
  Result<std::vector<Candidate>> TopK(Frame& frame, uint32_t k);
  template <class Out>
  Status LogProbabilities(Frame& frame, std::span<Out> out);
  uint64_t clusters_opened() const;

 private:
  // A word that the neural cache holds, with its unnormalised weight.
  struct CachedWord {
    uint32_t id;
    T weight;
  };

  // An open cluster's numbers, ready to be turned into log-probabilities.
  struct OpenClusterView {
    const T* logits;
    T largest, log_sum;  // of the logits: max, log sum exp(x - max)
    T parent;            // log p of the cluster itself; 0 for the head

    // log p of the cluster's word i before the cache is mixed in.
    T LogProbability(uint32_t i) const {
      const T within = (logits[i] - largest) - log_sum;
      return parent + (within < T{0} ? within : T{0});
    }
  };

  // Computes a cluster's logits and normaliser if this token has not asked for them yet.
  Status OpenCluster(Frame& frame, size_t index);
  Status OpenCache(Frame& frame);
  size_t ClusterOf(uint32_t id) const;
  // REQUIRES: the cluster and the head are open.
  OpenClusterView View(const Frame& frame, size_t index) const;
  // log p of the cluster itself; 0 for the head. REQUIRES: the head is open.
  T ClusterLogProbability(const Frame& frame, size_t index) const;
  // Mixes the cache in. `weight` is the word's in the cache, 0 if it is not there. Monotone in
  // both.
  T Mixed(T log_probability, T weight) const;
  T CachedWeight(uint32_t id) const { return weight_of_.empty() ? T{0} : weight_of_[id]; }
  // No word of the tail is more probable than this. REQUIRES: the head and the cache are open.
  T TailBound(const Frame& frame, size_t index) const;

  const Model& model_;
  EmptyCache empty_cache_;
  T lambda_, keep_, log_keep_;  // keep = 1 - lambda

  std::vector<bool> open_;  // by cluster
  bool cache_open_ = false;
  T cache_total_{0};                // sum of the weights of all stored pairs
  std::vector<CachedWord> cached_;  // distinct words, in order of their first storage slot
  std::vector<T>
      weight_of_;  // [vocabulary], 0 for words the cache does not hold; empty without cache
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_DISTRIBUTION_H_

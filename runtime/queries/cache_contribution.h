// What the neural cache adds to the probability of a word.
#ifndef KINGLET_RUNTIME_QUERIES_CACHE_CONTRIBUTION_H_
#define KINGLET_RUNTIME_QUERIES_CACHE_CONTRIBUTION_H_

namespace kinglet {

// The two terms of a word's probability. With the model's lambda, while the cache is not empty:
//   p(word) = (1 - lambda) exp(network_log_probability) + lambda cache_share
struct CacheContribution {
  double network_log_probability = 0;  // log p of the word by the network alone
  double cache_share = 0;  // fraction of the cache's total weight that is on pairs of the word
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_QUERIES_CACHE_CONTRIBUTION_H_

// What the neural cache adds to the probability of a token.
#ifndef KINGLET_RUNTIME_QUERIES_CACHE_CONTRIBUTION_H_
#define KINGLET_RUNTIME_QUERIES_CACHE_CONTRIBUTION_H_

namespace kinglet {

// The two terms of a token's probability. With the model's lambda, while the cache is not empty:
//   p(token) = (1 - lambda) exp(network_log_probability) + lambda cache_share
struct CacheContribution {
  double network_log_probability = 0;  // log p of the token by the network alone
  double cache_share = 0;  // fraction of the cache's total weight that is on pairs of the token
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_QUERIES_CACHE_CONTRIBUTION_H_

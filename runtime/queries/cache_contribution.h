// What the neural cache adds to the probability of a word.
#ifndef KINGLET_RUNTIME_QUERIES_CACHE_CONTRIBUTION_H_
#define KINGLET_RUNTIME_QUERIES_CACHE_CONTRIBUTION_H_

namespace kinglet {

// With the model's lambda, while the cache holds something:
//   p(word) = (1 - lambda) exp(network) + lambda part
struct CacheContribution {
  double network = 0;  // log p of the word by the network alone
  double part = 0;     // of the cache's total weight, that on pairs of the word; 0: none has it
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_QUERIES_CACHE_CONTRIBUTION_H_

// Queries about a given set of tokens: those that a caller allows, or those with a prefix.
#ifndef KINGLET_RUNTIME_QUERIES_SET_QUERIES_H_
#define KINGLET_RUNTIME_QUERIES_SET_QUERIES_H_

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/queries/best_candidates.h"
#include "runtime/queries/distribution.h"
#include "runtime/queries/token_set.h"

namespace kinglet {

// Errors of every query here are those of Distribution::OpenCluster. All queries throw
// std::bad_alloc. REQUIRES: the set is of the model's vocabulary.

// The k most probable tokens of the set, the most probable first, equal ones by lower id; all of
// them if there are no more than k. Computes the head, the neural cache, and those tails that may
// contain one of the best tokens of the set.
template <class T>
Result<std::vector<Candidate>> FindTopKOf(QueriedStream<T>& stream, const TokenSet& set,
                                          uint32_t k);

// The sum of exp(log p) over the tokens of the set: exp in T, the sum in double in the order of
// ids. Computes the head, the neural cache and the clusters of the tokens; nothing for an empty
// set.
template <class T>
Result<double> ProbabilityOfSet(QueriedStream<T>& stream, const TokenSet& set);

// Like ProbabilityOfSet, for disjoint parts of the set: adds exp(log p) of each token `id` of the
// set to sums[part_of[id]]. REQUIRES: part_of has an element for each token of the vocabulary,
// below sums.size() for those of the set.
template <class T>
Status AddProbabilities(QueriedStream<T>& stream, const TokenSet& set,
                        std::span<const uint32_t> part_of, std::span<double> sums);

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_QUERIES_SET_QUERIES_H_

// Queries about a given set of words: those that a caller allows, or those with a prefix.
#ifndef KINGLET_RUNTIME_QUERIES_SET_QUERIES_H_
#define KINGLET_RUNTIME_QUERIES_SET_QUERIES_H_

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/queries/best_candidates.h"
#include "runtime/queries/distribution.h"
#include "runtime/queries/word_set.h"

namespace kinglet {

// The errors of every query here are those of Distribution::OpenCluster. All throw std::bad_alloc.
// REQUIRES: the set is of the model's vocabulary.

// The k most probable words of the set, the most probable first, equal ones by lower id; all of
// them if there are no more than k. Computes the head, the neural cache, and of the tails with
// words of the set those that may hold one of the best.
template <class T>
Result<std::vector<Candidate>> FindTopKOf(QueriedStream<T>& stream, const WordSet& set, uint32_t k);

// The sum of exp(log p) over the words of the set: exp in T, the sum in double in the order of ids.
// Computes the head, the neural cache and the clusters of the words; nothing for an empty set.
template <class T>
Result<double> ProbabilityOfSet(QueriedStream<T>& stream, const WordSet& set);

// The same for disjoint parts of the set: the word `id` adds to sums[part_of[id]]. REQUIRES:
// part_of has an element for each word of the vocabulary, below sums.size() for those of the set.
template <class T>
Status AddProbabilities(QueriedStream<T>& stream, const WordSet& set,
                        std::span<const uint32_t> part_of, std::span<double> sums);

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_QUERIES_SET_QUERIES_H_

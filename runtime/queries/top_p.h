// The query for the nucleus: the fewest tokens that together have a given fraction of the
// probability mass.
//
// Source: Holtzman et al. 2020, "The Curious Case of Neural Text Degeneration".
#ifndef KINGLET_RUNTIME_QUERIES_TOP_P_H_
#define KINGLET_RUNTIME_QUERIES_TOP_P_H_

#include <vector>

#include "runtime/queries/best_candidates.h"
#include "runtime/queries/distribution.h"

namespace kinglet {

// With p = exp(log p) in T and sums in double: the fewest tokens, in the order of top-k, whose
// probabilities, added up in that order, are at least `share` times the sum of all probabilities as
// it is without rounding: 1, or 1 - lambda with an empty reference cache. All tokens for a share of
// 1, and where rounding leaves less. A tail is computed only if its tokens may be among them. Takes
// no more operations than all probabilities do. Errors: those of Distribution::OpenCluster. Throws
// std::bad_alloc. REQUIRES: 0 < share <= 1.
template <class T>
Result<std::vector<Candidate>> FindTopP(QueriedStream<T>& stream, double share);

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_QUERIES_TOP_P_H_

// The query for what the neural cache adds to the probability of a token.
#ifndef KINGLET_RUNTIME_QUERIES_CACHE_CONTRIBUTION_QUERY_H_
#define KINGLET_RUNTIME_QUERIES_CACHE_CONTRIBUTION_QUERY_H_

#include <cstdint>

#include "runtime/queries/cache_contribution.h"
#include "runtime/queries/distribution.h"

namespace kinglet {

// Computes the head, the token's cluster and the neural cache. In a model without a cache
// network_log_probability is the token's log p, and cache_share is 0. Errors: those of
// Distribution::OpenCluster. Throws std::bad_alloc. REQUIRES: id < vocabulary size.
template <class T>
Result<CacheContribution> CacheContributionOfToken(QueriedStream<T>& stream, uint32_t id);

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_QUERIES_CACHE_CONTRIBUTION_QUERY_H_

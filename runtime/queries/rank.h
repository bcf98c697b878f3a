// The query for how many tokens are more probable than a given one.
#ifndef KINGLET_RUNTIME_QUERIES_RANK_H_
#define KINGLET_RUNTIME_QUERIES_RANK_H_

#include <cstdint>

#include "runtime/queries/distribution.h"

namespace kinglet {

// The rank of token `id` among all tokens in the order of top-k: 1 for the most probable one, equal
// ones by lower id. Computes the head, the token's cluster, the neural cache, and those of the
// other tails that may contain a token as probable. Errors: those of Distribution::OpenCluster.
// Throws std::bad_alloc. REQUIRES: id < vocabulary size.
template <class T>
Result<uint32_t> RankOfToken(QueriedStream<T>& stream, uint32_t id);

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_QUERIES_RANK_H_

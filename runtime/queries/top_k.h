// The query for the k most probable tokens, which skips every tail that cannot contain one of them.
#ifndef KINGLET_RUNTIME_QUERIES_TOP_K_H_
#define KINGLET_RUNTIME_QUERIES_TOP_K_H_

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/queries/best_candidates.h"
#include "runtime/queries/distribution.h"

namespace kinglet {

// out[i] = the k most probable tokens after stream i, the most probable first, equal ones by lower
// id; all tokens if k exceeds the vocabulary. A tail is computed only if its cluster's probability,
// which bounds that of its tokens, leaves the answer open. Errors: those of
// Distribution::OpenCluster, after which no output has been written. Throws std::bad_alloc.
// `place`: kLogitsInBuffer if all tokens of the clusters will be read after this.
// REQUIRES: as many outputs as streams.
template <class T>
Status FindTopK(std::span<QueriedStream<T>> streams, uint32_t k,
                std::span<std::vector<Candidate>> out, LogitsPlace place = kLogitsNowhere);

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_QUERIES_TOP_K_H_

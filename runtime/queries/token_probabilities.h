// Queries for the log-probabilities of given tokens and of all tokens.
#ifndef KINGLET_RUNTIME_QUERIES_TOKEN_PROBABILITIES_H_
#define KINGLET_RUNTIME_QUERIES_TOKEN_PROBABILITIES_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/queries/distribution.h"

namespace kinglet {

// Errors of every query here are those of Distribution::OpenCluster, after which no output has been
// written.

// out[i] = log p of token ids[i] after stream i. Computes for each stream the head, the token's
// cluster and the neural cache. REQUIRES: as many ids and outputs as streams, ids < vocabulary
// size.
template <class T>
Status LogProbabilityOfToken(std::span<QueriedStream<T>> streams, std::span<const uint32_t> ids,
                             std::span<double> out);

// The first part of LogProbabilityOfToken, for tokens of one stream that went through the network
// together: computes the head and the cluster of token ids[i] after each of `streams`.
template <class T>
Status OpenClustersOfTokens(std::span<QueriedStream<T>> streams, std::span<const uint32_t> ids);
// The second part of LogProbabilityOfToken, for one of these tokens: computes the neural cache that
// the stream has after that token, with `stream.distribution`, which any of the streams may have,
// and sets `out` to log p of token `id`. `has_weights` tells that the cache's nodes already ran on
// the frame.
template <class T>
Status LogProbabilityInTurn(QueriedStream<T>& stream, bool has_weights, uint32_t id, double& out);

// out[i] = log p of token ids[i] after the one stream. REQUIRES: as many outputs as ids, ids <
// vocabulary size.
template <class T>
Status LogProbabilitiesOfTokens(QueriedStream<T>& stream, std::span<const uint32_t> ids,
                                std::span<double> out);

// out[id] = log p of every token, or p = exp(log p) computed in T. REQUIRES: out.size() ==
// vocabulary size. Out is float or double.
enum class Scale : uint8_t { kLogProbability, kProbability };
template <class T, class Out>
Status WriteDistribution(QueriedStream<T>& stream, Scale scale, std::span<Out> out);

// --- parts of these queries that sampling needs too

// out[i] = log p of the cluster's token i, the neural cache mixed in. REQUIRES: the cluster, the
// head and the cache are open; `out` has room for the cluster's tokens.
template <class T>
void WriteClusterTokens(QueriedStream<T>& stream, size_t cluster, T* out);
// The values of WriteClusterTokens, computed without the operations that change none of them: the
// head's sum with 0, and the comparison with 0, since a cluster's log sum exp(x - max) is at least
// log 1. For queries that count the additions which follow.
template <class T>
void WriteClusterSums(QueriedStream<T>& stream, size_t cluster, T* out);
// out[i] = exp(out[i]), computed by the session's threads.
template <class T>
void Exponentiate(QueriedStream<T>& stream, std::span<T> out);

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_QUERIES_TOKEN_PROBABILITIES_H_

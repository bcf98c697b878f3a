// The distribution over the next token of a stream, as far as queries have needed it. A cluster of
// the adaptive softmax (the head or a tail) is computed when a query first needs it, and kept until
// the stream's next token. Every answer is the value that the full computation gives, bit for bit.
//
//   log p(w in head)   = (x_w - max) - log sum exp(x - max)           over the head's logits
//   log p(w in tail c) = log p(c) + min(0, (x_w - max) - log sum exp(x - max))  over the tail's
//
// so log p(w) <= log p(c), from which queries know which tails they need not compute. The neural
// cache is mixed in afterwards (runtime/queries/neural_cache_mix.h). The queries are in files of
// their own: token_probabilities.h, top_k.h, sampling.h.
//
// Sources: Grave et al. 2017, "Efficient softmax approximation for GPUs" (adaptive softmax);
// docs/NUMERICS.md, rule 5.
#ifndef KINGLET_RUNTIME_QUERIES_DISTRIBUTION_H_
#define KINGLET_RUNTIME_QUERIES_DISTRIBUTION_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>

#include "kernels/logits.h"
#include "runtime/accounting/query_work.h"
#include "runtime/execute.h"
#include "runtime/queries/cluster_view.h"
#include "runtime/queries/neural_cache_mix.h"
#include "runtime/queries/query_memory.h"

namespace kinglet {

template <class T>
struct QueriedStream;

// The distribution of one stream, whose frame every call gets anew. T is the backend's real type.
template <class T>
class Distribution {
 public:
  // REQUIRES: `model`, `execution` and `memory` outlive the distribution.
  Distribution(const Model& model, EmptyCache empty_cache, Execution& execution,
               QueryMemory<T>& memory);

  // Forgets all results. Call after each step of the stream.
  void Invalidate();
  // Forgets the neural cache's weights, but not the clusters' results.
  void InvalidateCache() { cache_.Invalidate(); }
  // Takes the cache's weights from a frame on which the caller ran its nodes. KINGLET_NOT_FINITE.
  // REQUIRES: invalidated.
  Status TakeCache(const StreamFrame& frame) { return cache_.TakeWeights(frame, work_); }

  // What the queries since the last ResetWork computed.
  const QueryWork& work() const { return work_; }
  QueryWork& work() { return work_; }
  void ResetWork() { work_ = {}; }
  // Adds the arithmetic of the log-probabilities of `tokens` tokens, of which the cache holds
  // `held`.
  void CountTokens(double tokens, double held);

  // --- computing, for several streams at once: a cluster's weights are read once for all streams
  // that need the cluster. The functions may fail with KINGLET_NOT_FINITE or KINGLET_CANCELLED, or
  // throw std::bad_alloc; what had been computed by then stays valid. An error of one stream is the
  // answer to all. REQUIRES: 1 to kLanesTogether streams of one session, each of them once.

  // Computes a cluster's logits and normaliser for the streams that do not have them yet. `place`
  // is kLogitsInBuffer or kLogitsNowhere (kernels/logits.h); logits that are nowhere must be asked
  // for with NeedLogits before they are read.
  static Status OpenCluster(std::span<QueriedStream<T>> streams, size_t index,
                            LogitsPlace place = kLogitsInBuffer);
  // OpenCluster for one stream, which prefers to write the logits to `logits` [size]. Returns where
  // the logits are: in `logits` if the cluster's kernel can write them there and nothing can fail
  // afterwards, or else in the stream's frame. After an error `logits` is unchanged.
  static Result<const T*> OpenClusterAt(QueriedStream<T>& stream, size_t index, T* logits);
  // kinglet::ClusterMadeInAnswer; nullopt on a device.
  std::optional<size_t> ClusterMadeInAnswer() const;
  // Computes the weights of the neural cache for the streams that do not have them yet.
  static Status ComputeCache(std::span<QueriedStream<T>> streams);
  // Computes the weights of the neural cache, and fills each stream's table of tokens.
  static Status OpenCache(std::span<QueriedStream<T>> streams);
  // OpenCluster for every cluster.
  static Status OpenClusters(std::span<QueriedStream<T>> streams,
                             LogitsPlace place = kLogitsInBuffer);
  // OpenCluster for every cluster, and OpenCache.
  static Status ComputeAll(std::span<QueriedStream<T>> streams);

  const ClusterSet& clusters_opened() const { return opened_; }

  // --- streams on a device (kernels/device_program.h)

  // Adds what a device computed for an answer to the work: these clusters, a bit each, and the
  // log-probabilities of this number of tokens. Of the device's arithmetic only the part on tokens
  // outside the cache is known.
  void CountAnswer(uint64_t clusters, uint32_t looked_into);
  // KINGLET_NOT_FINITE, of a cluster's logits; the number of clusters stands for the cache.
  Status NotFinite(const StreamFrame& frame, size_t cluster) const;
  // Copies the results so far from the device to a frame whose memory does not have them.
  Status FetchOpened(const StreamFrame& frame);

  // --- reading, for the queries

  const Plan& plan() const { return model_.plan(); }
  // The cluster of a token. REQUIRES: id < vocabulary size.
  size_t ClusterOf(uint32_t id) const;
  // The softmax's log p of the cluster itself; 0 for the head. REQUIRES: the head is open.
  T ClusterLogProbability(const StreamFrame& frame, size_t index) const;
  // Computes the logits of tokens [first, first + count) of a cluster again if they were dropped.
  // Throws nothing. REQUIRES: the cluster is open; first + count <= its size.
  void NeedLogits(const StreamFrame& frame, size_t index, uint64_t first, uint64_t count) const;
  // Computes the logit of a token again if it was dropped. REQUIRES: the token's cluster is open.
  void NeedLogitOf(const StreamFrame& frame, uint32_t id) const;
  // REQUIRES: the cluster and the head are open.
  ClusterView<T> View(const StreamFrame& frame, size_t index) const;
  // REQUIRES of the view: the cache is open.
  const NeuralCacheMix<T>& cache() const { return cache_; }

  QueryMemory<T>& memory() { return memory_; }
  const ClusterFunctions<T>& functions() const { return functions_; }
  WorkerTeam* team() const { return execution_.team.get(); }
  // KINGLET_CANCELLED if the caller cancelled. Queries ask between parts of work outside nodes.
  Status TakeCancel() { return kinglet::TakeCancel(execution_, "query"); }

 private:
  // Runs the nodes on the streams of which needs(distribution) is true, fetches the buffers
  // `results` from a device, and then calls take(distribution, frame) for each of these streams.
  template <class Needs, class Take>
  static Status Open(std::span<QueriedStream<T>> streams, NodeRange nodes, LogitsPlace place,
                     std::initializer_list<BufferId> results, const Needs& needs, const Take& take);
  Status TakeCluster(const StreamFrame& frame, size_t index, LogitsPlace place);
  // kinglet::MakerOfLogits of the cluster; nullopt on a device.
  std::optional<size_t> MakerOfLogits(size_t index) const;
  Status ClusterNotFinite(const StreamFrame& frame, size_t index) const;

  const Model& model_;
  Execution& execution_;
  ClusterSet opened_, dropped_;  // dropped_ are the opened clusters without logits
  NeuralCacheMix<T> cache_;
  ClusterFunctions<T> functions_;
  QueryMemory<T>& memory_;
  QueryWork work_;
};

// A stream that a query is about. `frame` is that of the stream's last token.
template <class T>
struct QueriedStream {
  Distribution<T>* distribution = nullptr;
  StreamFrame frame = {};
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_QUERIES_DISTRIBUTION_H_

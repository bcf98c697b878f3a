// The distribution over the next token of a stream, as far as queries have needed it. A cluster of
// the adaptive softmax (the head or a tail) is computed when a query first needs it, and kept until
// the stream's next token. Every answer is the number that the full computation gives, bit for bit.
//
//   log p(w in head)   = (x_w - max) - log sum exp(x - max)
//   log p(w in tail c) = log p(c) + min(0, the same over the tail's logits)
//
// so log p(w) <= log p(c), from which queries know which tails they need not compute. The neural
// cache is mixed in afterwards (runtime/queries/neural_cache_mix.h). The queries are in files of
// their own: word_probabilities.h, top_k.h, sampling.h.
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

#include "runtime/accounting/query_work.h"
#include "runtime/execute.h"
#include "runtime/queries/cluster_view.h"
#include "runtime/queries/neural_cache_mix.h"
#include "runtime/queries/query_memory.h"

namespace kinglet {

struct DeviceAnswer;
template <class T>
struct QueriedStream;

// Whether a query reads all logits of a cluster. Where it reads few or none, kernels that can make
// them again (Kernel::make_logits) do not store them: those of many streams fit in no cache.
enum class Logits : uint8_t { kKept, kDropped };

// Of one stream, whose frame every call is given again. T is the backend's real type.
template <class T>
class Distribution {
 public:
  // `model`, `execution` and `memory` outlive it.
  Distribution(const Model& model, EmptyCache empty_cache, Execution& execution,
               QueryMemory<T>& memory);

  // Another token is the stream's last one: everything is to be computed again.
  void Invalidate();
  // The same for the neural cache alone.
  void InvalidateCache() { cache_.Invalidate(); }
  // Takes the cache's weights from a frame on which the caller ran its nodes. KINGLET_NOT_FINITE.
  // REQUIRES: invalidated.
  Status TakeCache(const StreamFrame& frame) { return cache_.TakeWeights(frame, work_); }

  // What the queries since the last ResetWork computed.
  const QueryWork& work() const { return work_; }
  QueryWork& work() { return work_; }
  void ResetWork() { work_ = {}; }
  // Adds the arithmetic of the log-probabilities of `words` words, of which the cache holds `held`.
  void CountWords(double words, double held);

  // --- computing, for several streams at once: each computes a cluster's weights with the others
  // that need it. Each may fail with KINGLET_NOT_FINITE or KINGLET_CANCELLED, or throw
  // std::bad_alloc; what had been computed by then stays valid. An error of one stream is the
  // answer to all. REQUIRES: 1 to kLanesTogether streams of one session, each of them once.

  // Computes a cluster's logits and normaliser for the streams that do not have them yet. Logits
  // that are dropped are not there until NeedLogits asks for them.
  static Status OpenCluster(std::span<QueriedStream<T>> streams, size_t index,
                            Logits logits = Logits::kKept);
  // The same of one stream. Returns where the logits are: in `logits` [size] where the cluster's
  // kernel can make them there and then nothing can fail, or else in the stream's frame. After an
  // error `logits` is as it was.
  static Result<const T*> OpenClusterAt(QueriedStream<T>& stream, size_t index, T* logits);
  // The last cluster of which that can be expected; none.
  std::optional<size_t> ClusterMadeInAnswer() const;
  // The same for the weights of the neural cache.
  static Status ComputeCache(std::span<QueriedStream<T>> streams);
  // The same, and fills each stream's table of words.
  static Status OpenCache(std::span<QueriedStream<T>> streams);
  // Every cluster.
  static Status OpenClusters(std::span<QueriedStream<T>> streams, Logits logits = Logits::kKept);
  // Every cluster and the cache.
  static Status ComputeAll(std::span<QueriedStream<T>> streams);

  const ClusterSet& clusters_opened() const { return opened_; }

  // --- of a device (kernels/device_program.h)

  // Adds to the work what a device did to answer by itself: of its arithmetic only that on words
  // outside the cache is known. KINGLET_NOT_FINITE if that is what the device found.
  Status TakeAnswer(const StreamFrame& frame, const DeviceAnswer& answer);
  // Copies what is computed from the device to a frame whose memory does not have it.
  Status FetchOpened(const StreamFrame& frame);

  // --- reading, for the queries

  const Plan& plan() const { return model_.plan(); }
  // The cluster that holds a word. REQUIRES: id < vocabulary size.
  size_t ClusterOf(uint32_t id) const;
  // The softmax's log p of the cluster itself; 0 for the head. REQUIRES: the head is open.
  T ClusterLogProbability(const StreamFrame& frame, size_t index) const;
  // Makes sure that the logits of words [first, first + count) of a cluster are there. Throws
  // nothing. REQUIRES: the cluster is open; first + count <= its size.
  void NeedLogits(const StreamFrame& frame, size_t index, uint64_t first, uint64_t count) const;
  // The same for one word. REQUIRES: its cluster is open.
  void NeedLogitOf(const StreamFrame& frame, uint32_t id) const;
  // REQUIRES: the cluster and the head are open.
  ClusterView<T> View(const StreamFrame& frame, size_t index) const;
  // REQUIRES of the view: the cache is open.
  const NeuralCacheMix<T>& cache() const { return cache_; }

  QueryMemory<T>& memory() { return memory_; }
  const ClusterFunctions<T>& functions() const { return functions_; }
  WorkerTeam* team() const { return execution_.team.get(); }
  // KINGLET_CANCELLED if the caller cancelled: asked between parts of work that no step does.
  Status TakeCancel() { return kinglet::TakeCancel(execution_, "query"); }

 private:
  // Runs the nodes on the streams of which needs(distribution) is true, brings what they left in
  // the `results` from a device, and then calls take(distribution, frame) for each of them.
  template <class Needs, class Take>
  static Status Open(std::span<QueriedStream<T>> streams, NodeRange nodes, Logits logits,
                     std::initializer_list<BufferId> results, const Needs& needs, const Take& take);
  Status TakeCluster(const StreamFrame& frame, size_t index, Logits logits);
  // The step whose kernel makes dropped logits of a cluster again; none: they are not dropped.
  std::optional<size_t> MakerOfLogits(size_t index) const;
  Status ClusterNotFinite(const StreamFrame& frame, size_t index) const;

  const Model& model_;
  Execution& execution_;
  ClusterSet opened_, dropped_;  // dropped: open, but without logits
  NeuralCacheMix<T> cache_;
  ClusterFunctions<T> functions_;
  QueryMemory<T>& memory_;
  QueryWork work_;
};

// A stream that a query is about; `frame` is that of its last token.
template <class T>
struct QueriedStream {
  Distribution<T>* distribution = nullptr;
  StreamFrame frame = {};
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_QUERIES_DISTRIBUTION_H_

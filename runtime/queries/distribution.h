// Queries about the next token, answered lazily and exactly. A cluster (the head or a tail) is
// computed when a query first needs it and remembered until the next token; the answer is always
// the number the full computation gives, bit for bit.
//
//   log p(w in head)   = (x_w - max) - log sum exp(x - max)
//   log p(w in tail c) = log p(c) + min(0, the same over the tail's logits)     so log p(w) <= log
//   p(c)
// With a neural cache of total weight > 0 and m(w) = share of the weight on pairs whose word is w:
//   m(w) = 0           log p(w) + log(1 - lambda)
//   m(w) > 0           log((1 - lambda) exp(log p(w)) + lambda m(w))
// A sample at temperature t draws the cluster, then the word, by weights p(w)^(1/t); a cluster is
// opened only if its weight must be known to choose (runtime/queries/sampling.h).
// Sources: Grave et al. 2017 (adaptive softmax), Grave et al. 2016 (neural cache);
// docs/NUMERICS.md, rule 5.
#ifndef KINGLET_RUNTIME_QUERIES_DISTRIBUTION_H_
#define KINGLET_RUNTIME_QUERIES_DISTRIBUTION_H_

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <vector>

#include "kernels/cluster_words.h"
#include "kernels/ref/cluster_words.h"
#include "runtime/execute.h"
#include "runtime/queries/best_candidates.h"
#include "runtime/queries/cached_words.h"
#include "runtime/queries/query_work.h"
#include "runtime/queries/sampling.h"

namespace kinglet {

// Streams of a session that answer a query together, at most: few enough that the logits of a
// large vocabulary are still in the processor's caches when they are read.
inline constexpr size_t kLanesTogether = 8;

// What the probability of a word is while the neural cache is empty (before the second token).
enum class EmptyCache : uint8_t {
  kReference,   // (1 - lambda) softmax, as the original code computes: the mass lambda is lost
  kNormalised,  // softmax
};

// What queries work on while they are answered; one for all streams of a session. Reserved for the
// largest query, so that none allocates once it writes its answer.
template <class T>
struct QueryMemory {
  QueryMemory(const Model& model, uint32_t streams);  // throws std::bad_alloc
  // What one has for each stream; kLanesTogether of them at most.
  static uint64_t BytesPerStream(const Model& model);

  // The words of a stream's cache, and whose they were last. Of the streams that are asked together
  // each has one: tables of all streams would come from memory, one after the other, for every
  // token.
  struct Table {
    CachedWords<T> words;
    const void* owner;
  };
  std::vector<Table> tables;
  std::vector<T> words;          // numbers of one cluster's words
  std::vector<uint32_t> places;  // of words in a block of logits
  // Of the cluster's words that the cache holds: ids, weights, mixed log p.
  std::vector<uint32_t> cached_ids;
  std::vector<T> cached_weights, cached_mixed;
};

// Of one stream. T is the backend's real type. Each query may fail with KINGLET_NOT_FINITE or
// KINGLET_CANCELLED, or throw std::bad_alloc; what it had computed by then stays valid.
template <class T>
class Distribution {
 public:
  // Throws std::bad_alloc. `execution` and `memory` outlive it.
  Distribution(const Model& model, EmptyCache empty_cache, Execution& execution,
               QueryMemory<T>& memory);
  // Another token is the last one: everything is to be computed again.
  void Invalidate();
  // Starts the account of what the next query does.
  void ResetWork() { work_ = {}; }
  const QueryWork& work() const { return work_; }

  // REQUIRES of all queries: ids < vocabulary size, outputs as long as the ids or the vocabulary.
  Status LogProbabilitiesOf(StreamFrame& frame, std::span<const uint32_t> ids,
                            std::span<double> out);
  Result<std::vector<Candidate>> TopK(StreamFrame& frame, uint32_t k);
  // REQUIRES: temperature >= 0 and finite.
  Result<uint32_t> Sample(StreamFrame& frame, uint64_t seed, double temperature);
  template <class Out>
  Status LogProbabilities(StreamFrame& frame, std::span<Out> out);
  // exp of the above, computed in T.
  template <class Out>
  Status Probabilities(StreamFrame& frame, std::span<Out> out);
  // Computes every cluster and the cache's weights.
  Status ComputeAll(StreamFrame& frame);
  // Adds what a device answered by itself to the account; KINGLET_NOT_FINITE if it could not. Of
  // the arithmetic only that on words outside the cache is known.
  Status TakeAnswer(const StreamFrame& frame, const DeviceAnswer& answer);
  // Copies what is computed by now from the device to a frame that has none of it.
  Status FetchOpened(const StreamFrame& frame);
  // What is computed by now.
  const ClusterSet& clusters_opened() const { return open_; }

  // A stream that is asked together with others of its session, each of them once; `frame` is that
  // of its last token. Each answer, and each stream's work, is that of asking it alone; a cluster
  // is computed at once for all streams that need it, and for no other. An error of one is the
  // answer to all. REQUIRES of the queries: at most kLanesTogether streams, outputs as many.
  struct Asked {
    Distribution* distribution;
    StreamFrame frame;
  };
  static Status TopK(std::span<Asked> asked, uint32_t k, std::span<std::vector<Candidate>> out);
  // log p of ids[i] after stream i.
  static Status LogProbabilityOf(std::span<Asked> asked, std::span<const uint32_t> ids,
                                 std::span<double> out);
  // `seeds` and `out` as many as streams.
  static Status Sample(std::span<Asked> asked, std::span<const uint64_t> seeds, double temperature,
                       std::span<uint32_t> out);
  static Status ComputeAll(std::span<Asked> asked);

 private:
  // An open cluster's numbers, ready to be turned into log-probabilities.
  struct OpenClusterView {
    uint32_t first, size;  // words
    const T* logits;
    ClusterTerms<T> terms;
    // log p of a word of the cluster before the cache is mixed in.
    T LogProbability(uint32_t id) const {
      return ref::SoftmaxLogProbability(logits[id - first], terms);
    }
  };

  // Computes a cluster's logits and normaliser if this token has not asked for them yet.
  Status OpenCluster(StreamFrame& frame, size_t index);
  Status OpenCache(StreamFrame& frame);
  static Status OpenCluster(std::span<Asked> asked, size_t index);
  static Status OpenCache(std::span<Asked> asked);
  // Runs the steps, which leave the buffers, on the streams of which needs(distribution) is true,
  // and then take(distribution, frame) on each of them.
  template <class Needs, class Take>
  static Status Open(std::span<Asked> asked, StepRange steps, std::initializer_list<BufferId> left,
                     const Needs& needs, const Take& take);
  Status ClusterNotFinite(const StreamFrame& frame, size_t index) const;
  Status CacheNotFinite(const StreamFrame& frame) const;
  // What this stream makes of a cluster's steps, or the cache's, once they have run.
  Status TakeCluster(const StreamFrame& frame, size_t index);
  Status TakeCache(const StreamFrame& frame);
  // The cache's words. REQUIRES: the cache is open.
  const CachedWords<T>& cached() const { return table_->words; }
  bool HasTable() const { return table_ != nullptr && table_->owner == this; }
  void FillTable(const StreamFrame& frame, typename QueryMemory<T>::Table& table);
  size_t ClusterOf(uint32_t id) const;
  // REQUIRES: the cluster and the head are open.
  OpenClusterView View(const StreamFrame& frame, size_t index) const;
  // log p of the words of the cluster that the cache holds, mixed, with their ids to the memory.
  // REQUIRES: the cluster, the head and the cache are open.
  void MixCached(const OpenClusterView& view, size_t index);
  // log p of all the cluster's words to `out`, cache mixed in. REQUIRES: the cluster, the head and
  // the cache are open.
  void WriteWords(const StreamFrame& frame, size_t index, T* out);
  template <class Work>
  void ForParts(size_t n, const Work& work);
  // out[i] = exp(out[i]).
  void Exponentiate(std::span<T> out);
  // Offers the cluster's words that can be among the best. REQUIRES: as above.
  void OfferWords(const StreamFrame& frame, size_t index, BestCandidates& best);
  template <class Out>
  Status WriteAll(StreamFrame& frame, std::span<Out> out, bool exponentiate);
  // log p of the cluster itself; 0 for the head. REQUIRES: the head is open.
  T ClusterLogProbability(const StreamFrame& frame, size_t index) const;
  // Mixes the cache in. `weight` is the word's in the cache, 0 if it is not there. Monotone in
  // both.
  T Mixed(T log_probability, T weight) const;
  // The term that a word outside the cache gets: -0, which adds nothing, where none is mixed in.
  T Keep() const;
  void CountWords(double words, double cached);
  // The largest weight that a word of the cluster has in the cache; 0 if none is there. REQUIRES:
  // the cache is open.
  T HeaviestCached(size_t index);
  // No word is more probable than this whose log p before the cache is mixed in and whose weight in
  // the cache are at most these. REQUIRES: the cache is open.
  T Bound(T log_probability, T weight);
  // log p of the cluster's most probable word before the cache is mixed in. REQUIRES: the cluster
  // and the head are open.
  T BestLogProbability(const StreamFrame& frame, size_t index) const;
  // log of the probability that a tail's words have together, cache included. REQUIRES: the head
  // and the cache are open.
  double LogShare(const StreamFrame& frame, size_t index) const;
  // The rest of a sample, once the most probable word is known.
  Result<uint32_t> SampleBelow(StreamFrame& frame, const Candidate& best, uint64_t seed,
                               double temperature);
  // The tempered weights of an open cluster's words to the memory, and their sum in word order.
  double WeighWords(const StreamFrame& frame, size_t index, T reference, T temperature);

  const Model& model_;
  EmptyCache empty_cache_;
  Execution& execution_;
  T lambda_, keep_, log_keep_;  // keep = 1 - lambda

  ClusterSet open_;
  bool cache_open_ = false;
  T cache_total_{0};                                 // sum of the weights of all stored pairs
  typename QueryMemory<T>::Table* table_ = nullptr;  // null: in none since the last token
  ClusterFunctions<T> functions_;
  QueryMemory<T>& memory_;
  QueryWork work_;
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_QUERIES_DISTRIBUTION_H_

// Mixes a neural cache into the softmax's probabilities. With lambda the cache's share, and m(w)
// the part of the cache's total weight that is on pairs whose word is w:
//
//   m(w) = 0    log p(w) = log softmax(w) + log(1 - lambda)
//   m(w) > 0    log p(w) = log((1 - lambda) softmax(w) + lambda m(w))
//
// Sources: Grave et al. 2016, "Improving Neural Language Models with a Continuous Cache";
// docs/NUMERICS.md, rule 5.
#ifndef KINGLET_RUNTIME_QUERIES_NEURAL_CACHE_MIX_H_
#define KINGLET_RUNTIME_QUERIES_NEURAL_CACHE_MIX_H_

#include <cstddef>
#include <cstdint>

#include "kernels/cluster_words.h"
#include "runtime/accounting/query_work.h"
#include "runtime/model.h"
#include "runtime/queries/cached_words.h"
#include "runtime/queries/cluster_view.h"
#include "runtime/queries/query_memory.h"
#include "runtime/queries/query_options.h"

namespace kinglet {

// The neural cache of one stream as queries see it. In a model without one it leaves every
// probability as it is. T is the backend's real type.
template <class T>
class NeuralCacheMix {
 public:
  // `model` outlives it.
  NeuralCacheMix(const Model& model, EmptyCache empty_cache);

  // Another token is the stream's last one: the weights are to be computed again.
  void Invalidate();

  // --- what a query does first (Distribution::ComputeCache, OpenCache)

  // Whether the weights after the last token were taken.
  bool computed() const { return computed_; }
  // Takes the weights that the cache's steps left in the frame, and adds what that took to `work`.
  // KINGLET_NOT_FINITE. REQUIRES: the model has a cache.
  Status TakeWeights(const StreamFrame& frame, QueryWork& work);
  Status NotFinite(const StreamFrame& frame) const;
  // Whether a table has this stream's words after its last token, and whether it is this one.
  bool HasTable() const { return table_ != nullptr && table_->owner == this; }
  bool HasTable(const typename QueryMemory<T>::Table& table) const {
    return HasTable() && table_ == &table;
  }
  // Fills the table with the words of the cache. REQUIRES: computed(), if the model has a cache.
  void FillTable(const StreamFrame& frame, typename QueryMemory<T>::Table& table);

  // A word's weight in the cache; 0 if the cache does not hold it. For one word this takes less
  // than to fill a table. REQUIRES: computed(), if the model has a cache.
  T SumWeightOf(const StreamFrame& frame, uint32_t id) const;

  // --- mixing. REQUIRES of all but Keep and MixedLogProbability: HasTable().

  bool is_in_model() const { return plan_ != nullptr; }
  // What a word that the cache does not hold gets added to its log-probability: log(1 - lambda), or
  // -0, which changes nothing, where no cache is mixed in.
  T Keep() const;
  // SumWeightOf, from the table.
  T WeightOf(uint32_t id) const { return table_->words.WeightOf(id); }
  // log p of a word with the cache mixed in, from its log p before and its weight in the cache.
  // Monotone in both.
  T MixedLogProbability(T log_probability, T weight) const;
  // The same for all words of a cluster that the cache holds, to memory.held_ids and
  // memory.held_mixed; their weights to memory.held_weights. Returns their number.
  size_t MixHeldWords(const ClusterView<T>& cluster, const ClusterFunctions<T>& functions,
                      QueryMemory<T>& memory) const;
  // The same with upper bounds, which need no logits: as if each word had the largest logit of its
  // tile.
  size_t BoundHeldWords(const ClusterView<T>& cluster, const ClusterFunctions<T>& functions,
                        QueryMemory<T>& memory) const;
  // The largest weight in the cache of a word of the cluster, or 0. Adds its comparisons to
  // `tally`.
  T HeaviestWordOf(size_t cluster, OperationTally& tally) const;
  // Calls f(id, weight) for the cluster's words that the cache holds, in an arbitrary order.
  template <class F>
  void ForEachHeldOf(size_t cluster, const F& f) const {
    table_->words.ForEachOf(cluster, f);
  }
  // The cache's share of all probability, after division by its sum: lambda, or 0 where no cache is
  // mixed in or it is empty.
  double Share() const { return total_ > T{0} ? plan_->lambda : 0; }
  // The part of the cache's total weight that a weight is. REQUIRES: Share() > 0.
  double PartOf(T weight) const {
    return static_cast<double>(weight) / static_cast<double>(total_);
  }
  // What all words' probabilities sum to but for rounding: 1, or less while the cache is empty.
  double Sum() const {
    const bool lost = plan_ != nullptr && total_ == T{0} && empty_cache_ == EmptyCache::kReference;
    return lost ? static_cast<double>(keep_) : 1;
  }
  // log of the probability of all words of a cluster together, from the softmax's log p of it.
  double MixedLogProbabilityOfCluster(size_t cluster, T log_softmax) const;

 private:
  template <class LogProbability>
  size_t MixHeld(const ClusterView<T>& cluster, const ClusterFunctions<T>& functions,
                 QueryMemory<T>& memory, const LogProbability& log_probability) const;
  CacheTerms<T> Terms() const { return {keep_, lambda_, total_}; }

  const CachePlan* plan_;  // null: the model has no cache
  const BufferLayout* layout_;
  EmptyCache empty_cache_;
  T lambda_{0}, keep_{1}, log_keep_{0};  // keep = 1 - lambda

  bool computed_ = false;
  T total_{0};                                       // sum of the weights of all pairs
  typename QueryMemory<T>::Table* table_ = nullptr;  // null: filled since the last token in none
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_QUERIES_NEURAL_CACHE_MIX_H_

// Mixes a neural cache into the softmax's probabilities. lambda is the probability mass of the
// cache, and m(w) the fraction of the cache's total weight that is on pairs whose token is w:
//
//   m(w) = 0    log p(w) = log softmax(w) + log(1 - lambda)
//   m(w) > 0    log p(w) = log((1 - lambda) softmax(w) + lambda m(w))
//
// Sources: Grave et al. 2017, "Improving Neural Language Models with a Continuous Cache";
// docs/NUMERICS.md, rule 5.
#ifndef KINGLET_RUNTIME_QUERIES_NEURAL_CACHE_MIX_H_
#define KINGLET_RUNTIME_QUERIES_NEURAL_CACHE_MIX_H_

#include <cstddef>
#include <cstdint>

#include "kernels/cluster_tokens.h"
#include "runtime/accounting/query_work.h"
#include "runtime/model.h"
#include "runtime/queries/cached_tokens.h"
#include "runtime/queries/cluster_view.h"
#include "runtime/queries/query_memory.h"
#include "runtime/queries/query_options.h"

namespace kinglet {

// The neural cache of one stream, as queries use it. In a model without a cache the mix changes no
// probability. T is the backend's real type.
template <class T>
class NeuralCacheMix {
 public:
  // REQUIRES: `model` outlives the mix.
  NeuralCacheMix(const Model& model, EmptyCache empty_cache);

  // Forgets the weights and the table. Call after each step of the stream.
  void Invalidate();

  // --- preparing a query (Distribution::ComputeCache, OpenCache)

  // Whether the weights after the last token were taken.
  bool computed() const { return computed_; }
  // Takes the weights that the cache's nodes left in the frame, and adds their operations to
  // `work`. KINGLET_NOT_FINITE. REQUIRES: the model has a cache.
  Status TakeWeights(const StreamFrame& frame, QueryWork& work);
  Status NotFinite(const StreamFrame& frame) const;
  // Whether some table contains this stream's tokens after its last token.
  bool HasTable() const { return table_ != nullptr && table_->owner == this; }
  // Whether this table contains this stream's tokens after its last token.
  bool HasTable(const typename QueryMemory<T>::Table& table) const {
    return HasTable() && table_ == &table;
  }
  // Fills the table with the tokens of the cache. REQUIRES: computed(), if the model has a cache.
  void FillTable(const StreamFrame& frame, typename QueryMemory<T>::Table& table);

  // A token's weight in the cache; 0 if the cache does not hold the token. Cheaper for one token
  // than filling a table. REQUIRES: computed(), if the model has a cache.
  T SumWeightOf(const StreamFrame& frame, uint32_t id) const;

  // --- mixing. REQUIRES of all but Keep and MixedLogProbability: HasTable().

  bool is_in_model() const { return plan_ != nullptr; }
  // The term added to the log-probability of a token that the cache does not hold: log(1 - lambda),
  // or -0, which changes nothing, if no cache is mixed in.
  T Keep() const;
  // A token's weight in the cache, as SumWeightOf, but from the table.
  T WeightOf(uint32_t id) const { return table_->tokens.WeightOf(id); }
  // log p of a token with the cache mixed in, from its log p before and its weight in the cache.
  // Monotone in both.
  T MixedLogProbability(T log_probability, T weight) const;
  // Computes log p of every token of a cluster that the cache holds. Writes the tokens' ids to
  // memory.held_ids, their weights to memory.held_weights and log p with the cache mixed in to
  // memory.held_mixed. Returns the number of these tokens.
  size_t MixHeldTokens(const ClusterView<T>& cluster, const ClusterFunctions<T>& functions,
                       QueryMemory<T>& memory) const;
  // Like MixHeldTokens, with upper bounds in place of log p, which need no logits of tokens: each
  // token is given the largest logit of its tile.
  size_t BoundHeldTokens(const ClusterView<T>& cluster, const ClusterFunctions<T>& functions,
                         QueryMemory<T>& memory) const;
  // The largest weight in the cache of a token of the cluster, or 0. Adds the comparisons to
  // `tally`.
  T HeaviestTokenOf(size_t cluster, OperationTally& tally) const;
  // Calls f(id, weight) for the cluster's tokens that the cache holds, in an arbitrary order.
  template <class F>
  void ForEachHeldOf(size_t cluster, const F& f) const {
    table_->tokens.ForEachOf(cluster, f);
  }
  // The probability mass of the cache, once probabilities are divided by their sum: lambda, or 0 if
  // no cache is mixed in or the cache is empty.
  double Share() const { return total_ > T{0} ? plan_->lambda : 0; }
  // A weight as a fraction of the cache's total weight. REQUIRES: Share() > 0.
  double PartOf(T weight) const {
    return static_cast<double>(weight) / static_cast<double>(total_);
  }
  // The sum of all tokens' probabilities, but for rounding: 1, or less while the cache is empty.
  double Sum() const {
    const bool lost = plan_ != nullptr && total_ == T{0} && empty_cache_ == EmptyCache::kReference;
    return lost ? static_cast<double>(keep_) : 1;
  }
  // log of the probability of all tokens of a cluster together, from the softmax's log p of the
  // cluster.
  double MixedLogProbabilityOfCluster(size_t cluster, T log_softmax) const;

 private:
  template <class LogProbability>
  size_t MixHeld(const ClusterView<T>& cluster, const ClusterFunctions<T>& functions,
                 QueryMemory<T>& memory, const LogProbability& log_probability) const;
  CacheTerms<T> Terms() const { return {keep_, lambda_, total_}; }

  const CachePlan* plan_;  // null for a model without a cache
  const BufferLayout* layout_;
  EmptyCache empty_cache_;
  T lambda_{0}, keep_{1}, log_keep_{0};  // keep = 1 - lambda

  bool computed_ = false;
  T total_{0};                                       // sum of the weights of all pairs
  typename QueryMemory<T>::Table* table_ = nullptr;  // null if no table was filled since the step
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_QUERIES_NEURAL_CACHE_MIX_H_

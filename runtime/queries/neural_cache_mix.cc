#include "runtime/queries/neural_cache_mix.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "kernels/cache_weight.h"
#include "kernels/functions.h"
#include "kernels/numerics.h"
#include "kernels/ref/cluster_tokens.h"

namespace kinglet {

template <class T>
NeuralCacheMix<T>::NeuralCacheMix(const Model& model, EmptyCache empty_cache)
    : plan_(model.plan().cache ? &*model.plan().cache : nullptr),
      layout_(&model.layout()),
      empty_cache_(empty_cache) {
  if (plan_ == nullptr) return;
  if (plan_->first_position > 1) empty_cache_ = EmptyCache::kNormalised;
  lambda_ = static_cast<T>(plan_->lambda);
  keep_ = static_cast<T>(1.0 - plan_->lambda);
  log_keep_ = Log(keep_);
}

template <class T>
void NeuralCacheMix<T>::Invalidate() {
  computed_ = false;
  total_ = T{0};
  table_ = nullptr;
}

template <class T>
Status NeuralCacheMix<T>::NotFinite(const StreamFrame& frame) const {
  return Status::Refusal(KINGLET_NOT_FINITE, "session",
                         "neural cache at position " + std::to_string(frame.position),
                         "finite weights", "an overflow in the model's own arithmetic");
}

template <class T>
Status NeuralCacheMix<T>::TakeWeights(const StreamFrame& frame, QueryWork& work) {
  work.cache = true;
  const T total = *(*layout_)[plan_->total].template At<T>(frame);
  if (!std::isfinite(total)) return NotFinite(frame);
  total_ = total;
  computed_ = true;
  // Counted as for a table, which adds up the weights of every token. SumWeightOf adds up those of
  // one token only.
  const auto pairs =
      static_cast<double>(CachePairs(frame.position, plan_->capacity, plan_->first_position));
  work.arithmetic += {0, pairs, pairs};
  return Status();
}

template <class T>
void NeuralCacheMix<T>::FillTable(const StreamFrame& frame, typename QueryMemory<T>::Table& table) {
  table_ = &table;
  if (table.owner != this) table.tokens.Clear();
  table.owner = this;
  if (plan_ == nullptr) return;
  const uint64_t pairs = CachePairs(frame.position, plan_->capacity, plan_->first_position);
  table.tokens.Set({(*layout_)[plan_->tokens].template At<uint32_t>(frame), pairs},
                   {(*layout_)[plan_->weights].template At<T>(frame), pairs});
}

template <class T>
T NeuralCacheMix<T>::SumWeightOf(const StreamFrame& frame, uint32_t id) const {
  if (plan_ == nullptr) return T{0};
  const uint32_t* const tokens = (*layout_)[plan_->tokens].template At<uint32_t>(frame);
  const T* const weights = (*layout_)[plan_->weights].template At<T>(frame);
  const uint64_t pairs = CachePairs(frame.position, plan_->capacity, plan_->first_position);
  CacheUnits<T> units{0};
  for (uint64_t i = 0; i < pairs; ++i) {
    if (tokens[i] == id) units += UnitsOf(weights[i]);
  }
  return WeightOfUnits<T>(units);
}

template <class T>
T NeuralCacheMix<T>::Keep() const {
  const bool unmixed =
      plan_ == nullptr || (total_ == T{0} && empty_cache_ == EmptyCache::kNormalised);
  return unmixed ? -T{0} : log_keep_;
}

template <class T>
T NeuralCacheMix<T>::MixedLogProbability(T log_probability, T weight) const {
  if (weight == T{0}) return log_probability + Keep();
  return ref::MixedLogProbability(log_probability, weight, Terms());
}

template <class T>
template <class LogProbability>
size_t NeuralCacheMix<T>::MixHeld(const ClusterView<T>& cluster,
                                  const ClusterFunctions<T>& functions, QueryMemory<T>& memory,
                                  const LogProbability& log_probability) const {
  uint32_t* const ids = memory.held_ids.data();
  T *const weights = memory.held_weights.data(), *const mixed = memory.held_mixed.data();
  size_t count = 0;
  table_->tokens.ForEachOf(cluster.index, [&](uint32_t id, T weight) {
    ids[count] = id;
    weights[count] = weight;
    mixed[count++] = log_probability(id);
  });
  functions.mix(weights, count, Terms(), mixed);
  return count;
}

template <class T>
size_t NeuralCacheMix<T>::MixHeldTokens(const ClusterView<T>& cluster,
                                        const ClusterFunctions<T>& functions,
                                        QueryMemory<T>& memory) const {
  return MixHeld(cluster, functions, memory,
                 [&](uint32_t id) { return cluster.SoftmaxLogProbability(id); });
}

template <class T>
size_t NeuralCacheMix<T>::BoundHeldTokens(const ClusterView<T>& cluster,
                                          const ClusterFunctions<T>& functions,
                                          QueryMemory<T>& memory) const {
  return MixHeld(cluster, functions, memory, [&](uint32_t id) {
    const T largest = cluster.tile_largest[(id - cluster.first) / kSumTile];
    return ref::SoftmaxLogProbability(largest, cluster.terms);
  });
}

template <class T>
T NeuralCacheMix<T>::HeaviestTokenOf(size_t cluster, OperationTally& tally) const {
  T heaviest{0};
  double compared = 0;
  table_->tokens.ForEachOf(cluster, [&](uint32_t, T weight) {
    heaviest = std::max(heaviest, weight);
    ++compared;
  });
  tally.others += compared;
  return heaviest;
}

template <class T>
double NeuralCacheMix<T>::MixedLogProbabilityOfCluster(size_t cluster, T log_softmax) const {
  const auto log_p = static_cast<double>(log_softmax);
  if (total_ == T{0}) return log_p + static_cast<double>(Keep());
  double weight = 0;
  table_->tokens.ForEachOf(cluster,
                           [&](uint32_t, T of_token) { weight += static_cast<double>(of_token); });
  const double lambda = plan_->lambda;
  return std::log((1 - lambda) * std::exp(log_p) + lambda * weight / static_cast<double>(total_));
}

template class NeuralCacheMix<float>;
template class NeuralCacheMix<double>;

}  // namespace kinglet

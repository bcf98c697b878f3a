#include "runtime/distribution.h"

#include <algorithm>
#include <string>

#include "kernels/functions.h"

namespace kinglet {
namespace {

// More probable first; equal ones by lower id.
bool Better(const Candidate& a, const Candidate& b) {
  return a.log_probability != b.log_probability ? a.log_probability > b.log_probability
                                                : a.id < b.id;
}

// The k best candidates seen so far, worst at the front of a heap.
class BestCandidates {
 public:
  explicit BestCandidates(size_t k) : k_(k) {}
  void Offer(const Candidate& candidate) {
    if (heap_.size() < k_) {
      heap_.push_back(candidate);
      std::push_heap(heap_.begin(), heap_.end(), Better);
    } else if (Better(candidate, heap_.front())) {
      std::pop_heap(heap_.begin(), heap_.end(), Better);
      heap_.back() = candidate;
      std::push_heap(heap_.begin(), heap_.end(), Better);
    }
  }
  // Whether a word no more probable than `bound` could still be among the best.
  bool CouldTake(double bound) const {
    return heap_.size() < k_ || !(bound < heap_.front().log_probability);
  }
  std::vector<Candidate> Sorted() && {
    std::sort(heap_.begin(), heap_.end(), Better);
    return std::move(heap_);
  }

 private:
  size_t k_;
  std::vector<Candidate> heap_;
};

}  // namespace

template <class T>
Distribution<T>::Distribution(const Model& model, EmptyCache empty_cache)
    : model_(model), empty_cache_(empty_cache), lambda_(0), keep_(1), log_keep_(0) {
  const Plan& plan = model.plan();
  open_.resize(plan.clusters.size());
  if (!plan.cache) return;
  if (plan.cache->first_position > 1) empty_cache_ = EmptyCache::kNormalised;
  lambda_ = static_cast<T>(plan.cache->lambda);
  keep_ = static_cast<T>(1.0 - plan.cache->lambda);
  log_keep_ = Log(keep_);
  weight_of_.resize(plan.vocabulary_size);
  cached_.reserve(plan.cache->capacity);
}

template <class T>
void Distribution<T>::Invalidate() {
  std::fill(open_.begin(), open_.end(), false);
  for (const CachedWord& word : cached_) weight_of_[word.id] = T{0};
  cached_.clear();
  cache_total_ = T{0};
  cache_open_ = false;
}

template <class T>
Status Distribution<T>::OpenCluster(Frame& frame, size_t index) {
  if (open_[index]) return Status();
  const ClusterPlan& cluster = model_.plan().clusters[index];
  RunSteps(model_, cluster.steps, frame, {});
  const T* normaliser = model_.layout()[cluster.normaliser].template At<T>(frame);
  if (!std::isfinite(normaliser[0]) || !std::isfinite(normaliser[1])) {
    return Status::Refusal(KINGLET_NOT_FINITE, "session",
                           "logits of cluster " + std::to_string(index) + " at position " +
                               std::to_string(frame.position),
                           "finite numbers", "an overflow in the model's own arithmetic");
  }
  open_[index] = true;
  return Status();
}

template <class T>
Status Distribution<T>::OpenCache(Frame& frame) {
  if (cache_open_ || !model_.plan().cache) return Status();
  const CachePlan& cache = *model_.plan().cache;
  RunSteps(model_, cache.steps, frame, {});
  const T total = *model_.layout()[cache.total].template At<T>(frame);
  if (!std::isfinite(total)) {
    return Status::Refusal(KINGLET_NOT_FINITE, "session",
                           "neural cache at position " + std::to_string(frame.position),
                           "finite weights", "an overflow in the model's own arithmetic");
  }
  cache_total_ = total;
  cache_open_ = true;
  if (frame.position < cache.first_position) return Status();
  const size_t stored = std::min<uint64_t>(frame.position, cache.capacity);
  const T* weights = model_.layout()[cache.weights].template At<T>(frame);
  const uint32_t* words = model_.layout()[cache.words].template At<uint32_t>(frame);
  // One chain per word in storage order. A weight may underflow to 0: such a pair changes nothing.
  for (size_t slot = 0; slot < stored; ++slot) {
    if (!(weights[slot] > T{0})) continue;
    T& weight = weight_of_[words[slot]];
    if (weight == T{0}) cached_.push_back({words[slot], T{0}});
    weight += weights[slot];
  }
  for (CachedWord& word : cached_) word.weight = weight_of_[word.id];
  return Status();
}

template <class T>
size_t Distribution<T>::ClusterOf(uint32_t id) const {
  const auto& clusters = model_.plan().clusters;
  size_t index = 0;
  while (index + 1 < clusters.size() && id >= clusters[index + 1].first) ++index;
  return index;
}

template <class T>
T Distribution<T>::ClusterLogProbability(const Frame& frame, size_t index) const {
  if (index == 0) return T{0};
  const auto& clusters = model_.plan().clusters;
  const T* logits = model_.layout()[clusters[0].logits].template At<T>(frame);
  const T* normaliser = model_.layout()[clusters[0].normaliser].template At<T>(frame);
  return (logits[clusters[index].parent_logit] - normaliser[0]) - normaliser[1];
}

template <class T>
typename Distribution<T>::OpenClusterView Distribution<T>::View(const Frame& frame,
                                                                size_t index) const {
  const ClusterPlan& cluster = model_.plan().clusters[index];
  const T* normaliser = model_.layout()[cluster.normaliser].template At<T>(frame);
  return {model_.layout()[cluster.logits].template At<T>(frame), normaliser[0], normaliser[1],
          ClusterLogProbability(frame, index)};
}

template <class T>
T Distribution<T>::Mixed(T log_probability, T weight) const {
  if (!model_.plan().cache) return log_probability;
  if (cache_total_ == T{0} && empty_cache_ == EmptyCache::kNormalised) return log_probability;
  if (weight == T{0}) return log_probability + log_keep_;
  return Log(keep_ * Exp(log_probability) + lambda_ * (weight / cache_total_));
}

template <class T>
T Distribution<T>::TailBound(const Frame& frame, size_t index) const {
  const ClusterPlan& plan = model_.plan().clusters[index];
  const T cluster = ClusterLogProbability(frame, index);
  T bound = Mixed(cluster, T{0});
  for (const CachedWord& word : cached_) {
    if (word.id - plan.first < plan.size) bound = std::max(bound, Mixed(cluster, word.weight));
  }
  // Rounded outward: the sequences above are monotone in float by test, the C library's in double
  // only nearly.
  return std::nextafter(std::nextafter(bound, std::numeric_limits<T>::infinity()),
                        std::numeric_limits<T>::infinity());
}

template <class T>
Result<T> Distribution<T>::LogProbability(Frame& frame, uint32_t id) {
  const size_t cluster = ClusterOf(id);
  KINGLET_RETURN_IF_ERROR(OpenCluster(frame, 0));
  KINGLET_RETURN_IF_ERROR(OpenCluster(frame, cluster));
  KINGLET_RETURN_IF_ERROR(OpenCache(frame));
  const uint32_t first = model_.plan().clusters[cluster].first;
  return Mixed(View(frame, cluster).LogProbability(id - first), CachedWeight(id));
}

template <class T>
Result<std::vector<Candidate>> Distribution<T>::TopK(Frame& frame, uint32_t k) {
  const auto& clusters = model_.plan().clusters;
  KINGLET_RETURN_IF_ERROR(OpenCluster(frame, 0));
  KINGLET_RETURN_IF_ERROR(OpenCache(frame));
  BestCandidates best(std::min(k, model_.plan().vocabulary_size));
  if (k == 0) return std::vector<Candidate>();
  for (size_t index = 0; index < clusters.size(); ++index) {
    if (index > 0) {
      if (!best.CouldTake(static_cast<double>(TailBound(frame, index)))) continue;
      KINGLET_RETURN_IF_ERROR(OpenCluster(frame, index));
    }
    const OpenClusterView view = View(frame, index);
    for (uint32_t i = 0; i < clusters[index].size; ++i) {
      const uint32_t id = clusters[index].first + i;
      best.Offer({id, static_cast<double>(Mixed(view.LogProbability(i), CachedWeight(id)))});
    }
  }
  return std::move(best).Sorted();
}

template <class T>
template <class Out>
Status Distribution<T>::LogProbabilities(Frame& frame, std::span<Out> out) {
  const auto& clusters = model_.plan().clusters;
  for (size_t index = 0; index < clusters.size(); ++index)
    KINGLET_RETURN_IF_ERROR(OpenCluster(frame, index));
  KINGLET_RETURN_IF_ERROR(OpenCache(frame));
  // Every word first as if the cache did not hold it, then the few that it holds again.
  for (size_t index = 0; index < clusters.size(); ++index) {
    const OpenClusterView view = View(frame, index);
    for (uint32_t i = 0; i < clusters[index].size; ++i) {
      out[clusters[index].first + i] = static_cast<Out>(Mixed(view.LogProbability(i), T{0}));
    }
  }
  for (const CachedWord& word : cached_) {
    const size_t index = ClusterOf(word.id);
    const T softmax = View(frame, index).LogProbability(word.id - clusters[index].first);
    out[word.id] = static_cast<Out>(Mixed(softmax, word.weight));
  }
  return Status();
}

template <class T>
uint64_t Distribution<T>::clusters_opened() const {
  uint64_t opened = 0;
  for (size_t i = 0; i < open_.size() && i < 64; ++i) opened |= uint64_t{open_[i]} << i;
  return opened;
}

template class Distribution<float>;
template class Distribution<double>;
template Status Distribution<float>::LogProbabilities(Frame&, std::span<float>);
template Status Distribution<float>::LogProbabilities(Frame&, std::span<double>);
template Status Distribution<double>::LogProbabilities(Frame&, std::span<float>);
template Status Distribution<double>::LogProbabilities(Frame&, std::span<double>);

}  // namespace kinglet

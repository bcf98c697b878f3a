#include "runtime/distribution.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

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
Distribution<T>::Distribution(const Model& model, EmptyCache empty_cache, CancelFlag& cancel,
                              const StepObservers& observers)
    : model_(model),
      empty_cache_(empty_cache),
      cancel_(cancel),
      observers_(observers),
      lambda_(0),
      keep_(1),
      log_keep_(0) {
  const Plan& plan = model.plan();
  open_.resize(plan.clusters.size());
  if (!plan.cache) return;
  lambda_ = static_cast<T>(plan.cache->lambda);
  keep_ = static_cast<T>(1.0 - plan.cache->lambda);
  log_keep_ = Log(keep_);
  weight_of_.resize(plan.vocabulary_size);
  cached_.reserve(plan.cache->capacity);
}

template <class T>
uint64_t Distribution<T>::Bytes(const Model& model) {
  const Plan& plan = model.plan();
  if (!plan.cache) return 0;
  return plan.vocabulary_size * sizeof(T) + plan.cache->capacity * sizeof(CachedWord);
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
  KINGLET_RETURN_IF_ERROR(RunSteps(model_, cluster.steps, {&frame, 1}, cancel_, observers_));
  work_.clusters |= uint64_t{1} << index;
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
Status Distribution<T>::ComputeAll(Frame& frame) {
  for (size_t i = 0; i < open_.size(); ++i) KINGLET_RETURN_IF_ERROR(OpenCluster(frame, i));
  return OpenCache(frame);
}

template <class T>
Status Distribution<T>::OpenCache(Frame& frame) {
  if (cache_open_ || !model_.plan().cache) return Status();
  const CachePlan& cache = *model_.plan().cache;
  KINGLET_RETURN_IF_ERROR(RunSteps(model_, cache.steps, {&frame, 1}, cancel_, observers_));
  const T total = *model_.layout()[cache.total].template At<T>(frame);
  if (!std::isfinite(total)) {
    return Status::Refusal(KINGLET_NOT_FINITE, "session",
                           "neural cache at position " + std::to_string(frame.position),
                           "finite weights", "an overflow in the model's own arithmetic");
  }
  cache_total_ = total;
  cache_open_ = true;
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
  work_.cache = true;
  const auto pairs = static_cast<double>(stored);
  work_.arithmetic += {0, pairs, pairs};
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

// log p of words: two differences, a comparison and the cluster's own log p; then the share that
// the cache leaves, or, for a word that it holds, two products, a sum, a quotient, an exponential
// and a logarithm.
template <class T>
void Distribution<T>::CountWords(double words, double cached) {
  const double plain = model_.plan().cache ? words - cached : 0;
  work_.arithmetic += {2 * cached, 3 * words + plain + cached, words + 3 * cached};
}

template <class T>
template <class Take>
void Distribution<T>::ForEachWord(const Frame& frame, size_t index, const Take& take) {
  const ClusterPlan& cluster = model_.plan().clusters[index];
  const OpenClusterView view = View(frame, index);
  double cached = 0;
  for (uint32_t i = 0; i < cluster.size; ++i) {
    const T weight = CachedWeight(cluster.first + i);
    if (weight != T{0}) ++cached;
    take(i, Mixed(view.LogProbability(i), weight));
  }
  CountWords(cluster.size, cached);
  if (index > 0) work_.arithmetic += {0, 2, 0};  // log p of the cluster
}

template <class T>
T Distribution<T>::TailBound(const Frame& frame, size_t index) {
  const ClusterPlan& plan = model_.plan().clusters[index];
  const T cluster = ClusterLogProbability(frame, index);
  T bound = Mixed(cluster, T{0});
  double cached = 0;
  for (const CachedWord& word : cached_) {
    if (word.id - plan.first >= plan.size) continue;
    bound = std::max(bound, Mixed(cluster, word.weight));
    ++cached;
  }
  // log p of the cluster and of its best word outside the cache; each cached word mixed and
  // compared; the answer with the k-th best.
  const double plain = model_.plan().cache ? 1 : 0;
  work_.arithmetic += {2 * cached, 2 + plain + cached, 1 + 4 * cached};
  // Rounded outward: the sequences above are monotone in float by test, the C library's in double
  // only nearly.
  return std::nextafter(std::nextafter(bound, std::numeric_limits<T>::infinity()),
                        std::numeric_limits<T>::infinity());
}

template <class T>
Status Distribution<T>::LogProbabilitiesOf(Frame& frame, std::span<const uint32_t> ids,
                                           std::span<double> out) {
  if (ids.empty()) return Status();
  KINGLET_RETURN_IF_ERROR(OpenCluster(frame, 0));
  for (const uint32_t id : ids) KINGLET_RETURN_IF_ERROR(OpenCluster(frame, ClusterOf(id)));
  KINGLET_RETURN_IF_ERROR(OpenCache(frame));
  double cached = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    const size_t cluster = ClusterOf(ids[i]);
    const uint32_t first = model_.plan().clusters[cluster].first;
    const T weight = CachedWeight(ids[i]);
    out[i] =
        static_cast<double>(Mixed(View(frame, cluster).LogProbability(ids[i] - first), weight));
    if (weight != T{0}) ++cached;
    if (cluster > 0) work_.arithmetic += {0, 2, 0};
  }
  CountWords(static_cast<double>(ids.size()), cached);
  return Status();
}

template <class T>
Result<std::vector<Candidate>> Distribution<T>::TopK(Frame& frame, uint32_t k) {
  const auto& clusters = model_.plan().clusters;
  if (k == 0) return std::vector<Candidate>();
  KINGLET_RETURN_IF_ERROR(OpenCluster(frame, 0));
  KINGLET_RETURN_IF_ERROR(OpenCache(frame));
  BestCandidates best(std::min(k, model_.plan().vocabulary_size));
  for (size_t index = 0; index < clusters.size(); ++index) {
    if (index > 0) {
      if (!best.CouldTake(static_cast<double>(TailBound(frame, index)))) continue;
      KINGLET_RETURN_IF_ERROR(OpenCluster(frame, index));
    }
    ForEachWord(frame, index, [&](uint32_t i, T log_probability) {
      best.Offer({clusters[index].first + i, static_cast<double>(log_probability)});
    });
    work_.arithmetic.others += clusters[index].size;  // each compared with the k-th best
  }
  return std::move(best).Sorted();
}

template <class T>
double Distribution<T>::LogShare(const Frame& frame, size_t index) const {
  const ClusterPlan& cluster = model_.plan().clusters[index];
  const double softmax = std::exp(static_cast<double>(ClusterLogProbability(frame, index)));
  if (!model_.plan().cache || cache_total_ == T{0}) return std::log(softmax);
  double weight = 0;
  for (const CachedWord& word : cached_) {
    if (word.id - cluster.first < cluster.size) weight += static_cast<double>(word.weight);
  }
  const double lambda = model_.plan().cache->lambda;
  return std::log((1 - lambda) * softmax + lambda * weight / static_cast<double>(cache_total_));
}

template <class T>
double Distribution<T>::WeighWords(const Frame& frame, size_t index, T reference, T temperature) {
  weights_.resize(model_.plan().clusters[index].size);
  double sum = 0;
  ForEachWord(frame, index, [&](uint32_t i, T log_probability) {
    weights_[i] = Exp((log_probability - reference) / temperature);
    sum += static_cast<double>(weights_[i]);
  });
  const auto words = static_cast<double>(weights_.size());
  work_.arithmetic += {0, 2 * words, 2 * words};  // difference, sum; quotient, exponential
  return sum;
}

template <class T>
Result<uint32_t> Distribution<T>::Sample(Frame& frame, uint64_t seed, double temperature) {
  KINGLET_ASSIGN_OR_RETURN(const std::vector<Candidate> best, TopK(frame, 1));
  const T divisor =
      static_cast<T>(std::min(temperature, static_cast<double>(std::numeric_limits<T>::max())));
  if (std::isinf(T{1} / divisor)) return best.front().id;  // no other word has any weight
  const auto reference = static_cast<T>(best.front().log_probability);

  const auto& clusters = model_.plan().clusters;
  std::vector<MassBounds> masses(clusters.size());
  size_t weighed = clusters.size();  // the cluster that weights_ belongs to
  const auto weigh = [&](size_t i) -> Status {
    if (weighed == i) return Status();
    KINGLET_RETURN_IF_ERROR(OpenCluster(frame, i));
    masses[i] = MassBounds::Exactly(WeighWords(frame, i, reference, divisor));
    weighed = i;
    return Status();
  };
  for (size_t i = clusters.size(); i-- > 0;) {  // the head, most often the choice, last
    if (open_[i]) {
      KINGLET_RETURN_IF_ERROR(weigh(i));
    } else {
      masses[i] = BoundMass(LogShare(frame, i), clusters[i].size, static_cast<double>(divisor),
                            static_cast<double>(reference));
    }
  }
  const double uniform = UniformDraw(seed, frame.position, 0);
  std::optional<size_t> chosen = ChooseCluster(masses, uniform);
  while (!chosen) {
    const auto widest = std::max_element(
        masses.begin(), masses.end(),
        [](const MassBounds& a, const MassBounds& b) { return a.high - a.low < b.high - b.low; });
    KINGLET_RETURN_IF_ERROR(weigh(static_cast<size_t>(widest - masses.begin())));
    chosen = ChooseCluster(masses, uniform);
  }
  KINGLET_RETURN_IF_ERROR(weigh(*chosen));

  const double target = UniformDraw(seed, frame.position, 1) * masses[*chosen].low;
  double sum = 0;
  uint32_t last = 0;
  for (uint32_t i = 0; i < clusters[*chosen].size; ++i) {
    sum += static_cast<double>(weights_[i]);
    if (weights_[i] > T{0}) last = i;
    if (sum > target) break;
  }
  return clusters[*chosen].first + last;
}

template <class T>
template <class Out, class Transform>
Status Distribution<T>::WriteAll(Frame& frame, std::span<Out> out, const Transform& transform) {
  const auto& clusters = model_.plan().clusters;
  KINGLET_RETURN_IF_ERROR(ComputeAll(frame));
  // Every word first as if the cache did not hold it, then the few that it holds again.
  for (size_t index = 0; index < clusters.size(); ++index) {
    const OpenClusterView view = View(frame, index);
    for (uint32_t i = 0; i < clusters[index].size; ++i) {
      out[clusters[index].first + i] =
          static_cast<Out>(transform(Mixed(view.LogProbability(i), T{0})));
    }
    CountWords(clusters[index].size, 0);
    if (index > 0) work_.arithmetic += {0, 2, 0};
  }
  for (const CachedWord& word : cached_) {
    const size_t index = ClusterOf(word.id);
    const T softmax = View(frame, index).LogProbability(word.id - clusters[index].first);
    out[word.id] = static_cast<Out>(transform(Mixed(softmax, word.weight)));
    if (index > 0) work_.arithmetic += {0, 2, 0};
  }
  CountWords(static_cast<double>(cached_.size()), static_cast<double>(cached_.size()));
  return Status();
}

template <class T>
template <class Out>
Status Distribution<T>::LogProbabilities(Frame& frame, std::span<Out> out) {
  return WriteAll(frame, out, [](T log_probability) { return log_probability; });
}

template <class T>
template <class Out>
Status Distribution<T>::Probabilities(Frame& frame, std::span<Out> out) {
  KINGLET_RETURN_IF_ERROR(
      WriteAll(frame, out, [](T log_probability) { return Exp(log_probability); }));
  work_.arithmetic.others += static_cast<double>(out.size());
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
template Status Distribution<float>::Probabilities(Frame&, std::span<float>);
template Status Distribution<float>::Probabilities(Frame&, std::span<double>);
template Status Distribution<double>::Probabilities(Frame&, std::span<float>);
template Status Distribution<double>::Probabilities(Frame&, std::span<double>);

}  // namespace kinglet

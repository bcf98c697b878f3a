#include "runtime/queries/distribution.h"

#include <algorithm>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "kernels/cluster_of.h"
#include "kernels/functions.h"

namespace kinglet {
namespace {

// Logits that are looked through at once for words that can be among the best, as long as any can.
constexpr uint32_t kFirstWords = 256;
constexpr size_t kPlacesMargin = 16;  // ClusterFunctions::at_least
constexpr size_t kPartWords = 4096;   // whose numbers one thread computes at a time

uint32_t CacheCapacity(const Model& model) {
  return model.plan().cache ? model.plan().cache->capacity : 0;
}

template <class T>
ClusterFunctions<T> FunctionsOf(const Model& model);
template <>
ClusterFunctions<float> FunctionsOf(const Model& model) {
  return model.cluster_functions();
}
template <>
ClusterFunctions<double> FunctionsOf(const Model&) {
  return ref::kClusterFunctions<double>;
}

}  // namespace

template <class T>
QueryMemory<T>::QueryMemory(const Model& model, uint32_t streams) {
  const size_t together = std::min<size_t>(streams, kLanesTogether);
  uint32_t largest = 0;
  std::vector<uint32_t> firsts;
  for (const ClusterPlan& cluster : model.plan().clusters) {
    largest = std::max(largest, cluster.size);
    firsts.push_back(cluster.first);
  }
  tables.reserve(together);
  while (tables.size() < together) {
    tables.push_back({CachedWords<T>(CacheCapacity(model), firsts), nullptr});
  }
  words.reserve(largest);
  places.reserve(std::min<uint32_t>(largest, kSumBlock) + kPlacesMargin);
  if (!model.plan().cache) return;
  const uint32_t capacity = model.plan().cache->capacity;
  cached_ids.reserve(capacity);
  cached_weights.reserve(capacity);
  cached_mixed.reserve(capacity);
}

template <class T>
uint64_t QueryMemory<T>::BytesPerStream(const Model& model) {
  return CachedWords<T>::Bytes(CacheCapacity(model), model.plan().clusters.size());
}

template <class T>
Distribution<T>::Distribution(const Model& model, EmptyCache empty_cache, Execution& execution,
                              QueryMemory<T>& memory)
    : model_(model),
      empty_cache_(empty_cache),
      execution_(execution),
      lambda_(0),
      keep_(1),
      log_keep_(0),
      functions_(FunctionsOf<T>(model)),
      memory_(memory) {
  const Plan& plan = model.plan();
  if (!plan.cache) return;
  if (plan.cache->first_position > 1) empty_cache_ = EmptyCache::kNormalised;
  lambda_ = static_cast<T>(plan.cache->lambda);
  keep_ = static_cast<T>(1.0 - plan.cache->lambda);
  log_keep_ = Log(keep_);
}

template <class T>
void Distribution<T>::Invalidate() {
  open_ = {};
  table_ = nullptr;
  cache_total_ = T{0};
  cache_open_ = false;
}

template <class T>
Status Distribution<T>::OpenCluster(StreamFrame& frame, size_t index) {
  if (open_.Contains(index)) return Status();
  Asked self = {this, frame};
  return OpenCluster({&self, 1}, index);
}

template <class T>
Status Distribution<T>::ClusterNotFinite(const StreamFrame& frame, size_t index) const {
  return Status::Refusal(KINGLET_NOT_FINITE, "session",
                         "logits of cluster " + std::to_string(index) + " at position " +
                             std::to_string(frame.position),
                         "finite numbers", "an overflow in the model's own arithmetic");
}

template <class T>
Status Distribution<T>::CacheNotFinite(const StreamFrame& frame) const {
  return Status::Refusal(KINGLET_NOT_FINITE, "session",
                         "neural cache at position " + std::to_string(frame.position),
                         "finite weights", "an overflow in the model's own arithmetic");
}

template <class T>
Status Distribution<T>::TakeCluster(const StreamFrame& frame, size_t index) {
  work_.clusters.Insert(index);
  const ClusterPlan& cluster = model_.plan().clusters[index];
  const T* normaliser = model_.layout()[cluster.normaliser].template At<T>(frame);
  if (!std::isfinite(normaliser[0]) || !std::isfinite(normaliser[1])) {
    return ClusterNotFinite(frame, index);
  }
  open_.Insert(index);
  return Status();
}

template <class T>
Status Distribution<T>::ComputeAll(StreamFrame& frame) {
  Asked self = {this, frame};
  return ComputeAll({&self, 1});
}

template <class T>
Status Distribution<T>::OpenCache(StreamFrame& frame) {
  Asked self = {this, frame};
  return OpenCache({&self, 1});
}

template <class T>
Status Distribution<T>::TakeCache(const StreamFrame& frame) {
  const CachePlan& cache = *model_.plan().cache;
  work_.cache = true;
  const T total = *model_.layout()[cache.total].template At<T>(frame);
  if (!std::isfinite(total)) {
    return CacheNotFinite(frame);
  }
  cache_total_ = total;
  cache_open_ = true;
  const auto pairs =
      static_cast<double>(CachePairs(frame.position, cache.capacity, cache.first_position));
  work_.arithmetic += {0, pairs, pairs};
  return Status();
}

template <class T>
void Distribution<T>::FillTable(const StreamFrame& frame, typename QueryMemory<T>::Table& table) {
  table_ = &table;
  if (table.owner != this) table.words.Clear();
  table.owner = this;
  if (!model_.plan().cache) return;
  const CachePlan& cache = *model_.plan().cache;
  const uint64_t stored = CachePairs(frame.position, cache.capacity, cache.first_position);
  table.words.Set({model_.layout()[cache.words].template At<uint32_t>(frame), stored},
                  {model_.layout()[cache.weights].template At<T>(frame), stored});
}

template <class T>
size_t Distribution<T>::ClusterOf(uint32_t id) const {
  const auto& clusters = model_.plan().clusters;
  return kinglet::ClusterOf(id, static_cast<uint32_t>(clusters.size()),
                            [&](uint32_t i) { return clusters[i].first; });
}

template <class T>
T Distribution<T>::ClusterLogProbability(const StreamFrame& frame, size_t index) const {
  if (index == 0) return T{0};
  const auto& clusters = model_.plan().clusters;
  const T* logits = model_.layout()[clusters[0].logits].template At<T>(frame);
  const T* normaliser = model_.layout()[clusters[0].normaliser].template At<T>(frame);
  return (logits[clusters[index].parent_logit] - normaliser[0]) - normaliser[1];
}

template <class T>
typename Distribution<T>::OpenClusterView Distribution<T>::View(const StreamFrame& frame,
                                                                size_t index) const {
  const ClusterPlan& cluster = model_.plan().clusters[index];
  const T* normaliser = model_.layout()[cluster.normaliser].template At<T>(frame);
  return {cluster.first,
          cluster.size,
          model_.layout()[cluster.logits].template At<T>(frame),
          {normaliser[0], normaliser[1], ClusterLogProbability(frame, index), Keep()}};
}

template <class T>
T Distribution<T>::Keep() const {
  const bool none =
      !model_.plan().cache || (cache_total_ == T{0} && empty_cache_ == EmptyCache::kNormalised);
  return none ? -T{0} : log_keep_;
}

template <class T>
T Distribution<T>::Mixed(T log_probability, T weight) const {
  if (weight == T{0}) return log_probability + Keep();
  return ref::MixedLogProbability(log_probability, weight, {keep_, lambda_, cache_total_});
}

// work(begin, count) for parts of n words, by the session's threads.
template <class T>
template <class Work>
void Distribution<T>::ForParts(size_t n, const Work& work) {
  const auto part = [&](Chunks chunks) {
    const size_t begin = chunks.begin * kPartWords;
    work(begin, std::min(chunks.end * kPartWords, n) - begin);
  };
  RunChunks((n + kPartWords - 1) / kPartWords, part, execution_.team.get());
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
void Distribution<T>::MixCached(const OpenClusterView& view, size_t index) {
  memory_.cached_ids.clear();
  memory_.cached_weights.clear();
  memory_.cached_mixed.clear();
  cached().ForEachOf(index, [&](uint32_t id, T weight) {
    memory_.cached_ids.push_back(id);
    memory_.cached_weights.push_back(weight);
    memory_.cached_mixed.push_back(view.LogProbability(id));
  });
  const auto count = static_cast<double>(memory_.cached_ids.size());
  functions_.mix(memory_.cached_weights.data(), memory_.cached_ids.size(),
                 {keep_, lambda_, cache_total_}, memory_.cached_mixed.data());
  CountWords(count, count);
}

template <class T>
void Distribution<T>::WriteWords(const StreamFrame& frame, size_t index, T* out) {
  const OpenClusterView view = View(frame, index);
  ForParts(view.size, [&](size_t begin, size_t count) {
    functions_.log_probabilities(view.logits + begin, count, view.terms, out + begin);
  });
  // The few that the cache holds once more.
  MixCached(view, index);
  for (size_t i = 0; i < memory_.cached_ids.size(); ++i)
    out[memory_.cached_ids[i] - view.first] = memory_.cached_mixed[i];
  CountWords(view.size, 0);
  if (index > 0) work_.arithmetic += {0, 2, 0};  // log p of the cluster
}

template <class T>
void Distribution<T>::Exponentiate(std::span<T> out) {
  ForParts(out.size(), [&](size_t begin, size_t count) {
    functions_.exponentials(out.data() + begin, count, out.data() + begin);
  });
}

template <class T>
void Distribution<T>::OfferWords(const StreamFrame& frame, size_t index, BestCandidates& best) {
  const OpenClusterView view = View(frame, index);
  MixCached(view, index);
  for (size_t i = 0; i < memory_.cached_ids.size(); ++i) {
    best.Offer({memory_.cached_ids[i], static_cast<double>(memory_.cached_mixed[i])});
  }
  const T* sums = model_.layout()[model_.plan().clusters[index].blocks].template At<T>(frame);
  const auto threshold = [&best] { return static_cast<T>(best.Threshold()); };
  T least_sum = LeastBlockSum(view.terms, threshold());
  uint32_t looked_into = 0, n = 0;
  for (uint32_t begin = 0; begin < view.size; begin += n) {
    n = std::min<uint32_t>(kSumBlock - begin % kSumBlock, view.size - begin);
    if (sums[begin / kSumBlock] < least_sum) continue;
    if (std::isinf(threshold())) n = std::min(n, kFirstWords);
    looked_into += n;
    memory_.places.resize(n + kPlacesMargin);
    // Equal ones too: a lower id comes first.
    const size_t found =
        functions_.at_least(view.logits + begin, n, view.terms, threshold(), memory_.places.data());
    for (size_t i = 0; i < found; ++i) {
      const uint32_t id = view.first + begin + memory_.places[i];
      if (cached().WeightOf(id) != T{0}) continue;  // offered above
      best.Offer({id, static_cast<double>(Mixed(view.LogProbability(id), T{0}))});
    }
    if (found > 0) least_sum = LeastBlockSum(view.terms, threshold());
  }
  CountWords(looked_into, 0);
  if (index > 0) work_.arithmetic += {0, 2, 0};
  // Each, and each block, compared with the k-th best.
  work_.arithmetic.others += looked_into + static_cast<double>(SumBlocks(view.size)) +
                             static_cast<double>(memory_.cached_ids.size());
}

template <class T>
T Distribution<T>::HeaviestCached(size_t index) {
  T heaviest{0};
  double compared = 0;
  cached().ForEachOf(index, [&](uint32_t, T weight) {
    heaviest = std::max(heaviest, weight);
    ++compared;
  });
  work_.arithmetic.others += compared;
  return heaviest;
}

template <class T>
T Distribution<T>::Bound(T log_probability, T weight) {
  const T bound = std::max(Mixed(log_probability, T{0}), Mixed(log_probability, weight));
  // The two differences that made log_probability; that of the best word outside the cache and, if
  // there is one, inside; the two, and the answer with the k-th best.
  const double mixed = weight > T{0} ? 1 : 0;
  work_.arithmetic += {2 * mixed, 2 + (model_.plan().cache ? 1 : 0) + mixed, 4 * mixed + 1};
  // Rounded outward: the sequences above are monotone in float by test, the C library's in double
  // only nearly.
  return std::nextafter(std::nextafter(bound, std::numeric_limits<T>::infinity()),
                        std::numeric_limits<T>::infinity());
}

template <class T>
T Distribution<T>::BestLogProbability(const StreamFrame& frame, size_t index) const {
  const OpenClusterView view = View(frame, index);
  return ref::SoftmaxLogProbability(view.terms.largest, view.terms);
}

template <class T>
Status Distribution<T>::LogProbabilitiesOf(StreamFrame& frame, std::span<const uint32_t> ids,
                                           std::span<double> out) {
  if (ids.empty()) return Status();
  KINGLET_RETURN_IF_ERROR(OpenCluster(frame, 0));
  for (const uint32_t id : ids) KINGLET_RETURN_IF_ERROR(OpenCluster(frame, ClusterOf(id)));
  KINGLET_RETURN_IF_ERROR(OpenCache(frame));
  double words_cached = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    const size_t cluster = ClusterOf(ids[i]);
    const T weight = cached().WeightOf(ids[i]);
    out[i] = static_cast<double>(Mixed(View(frame, cluster).LogProbability(ids[i]), weight));
    if (weight != T{0}) ++words_cached;
    if (cluster > 0) work_.arithmetic += {0, 2, 0};
  }
  CountWords(static_cast<double>(ids.size()), words_cached);
  return Status();
}

template <class T>
Result<std::vector<Candidate>> Distribution<T>::TopK(StreamFrame& frame, uint32_t k) {
  Asked self = {this, frame};
  std::vector<Candidate> best;
  KINGLET_RETURN_IF_ERROR(TopK({&self, 1}, k, {&best, 1}));
  return best;
}

template <class T>
double Distribution<T>::LogShare(const StreamFrame& frame, size_t index) const {
  const auto log_softmax = static_cast<double>(ClusterLogProbability(frame, index));
  if (cache_total_ == T{0}) return log_softmax + static_cast<double>(Keep());
  double weight = 0;
  cached().ForEachOf(index, [&](uint32_t, T of_word) { weight += static_cast<double>(of_word); });
  const double lambda = model_.plan().cache->lambda;
  return std::log((1 - lambda) * std::exp(log_softmax) +
                  lambda * weight / static_cast<double>(cache_total_));
}

template <class T>
double Distribution<T>::WeighWords(const StreamFrame& frame, size_t index, T reference,
                                   T temperature) {
  memory_.words.resize(model_.plan().clusters[index].size);
  WriteWords(frame, index, memory_.words.data());
  for (T& word : memory_.words) word = (word - reference) / temperature;
  Exponentiate(memory_.words);
  double sum = 0;
  for (const T weight : memory_.words) sum += static_cast<double>(weight);
  const auto words = static_cast<double>(memory_.words.size());
  work_.arithmetic += {0, 2 * words, 2 * words};  // difference, sum; quotient, exponential
  return sum;
}

template <class T>
Result<uint32_t> Distribution<T>::Sample(StreamFrame& frame, uint64_t seed, double temperature) {
  KINGLET_ASSIGN_OR_RETURN(const std::vector<Candidate> best, TopK(frame, 1));
  return SampleBelow(frame, best.front(), seed, temperature);
}

template <class T>
Result<uint32_t> Distribution<T>::SampleBelow(StreamFrame& frame, const Candidate& best,
                                              uint64_t seed, double temperature) {
  const T divisor =
      static_cast<T>(std::min(temperature, static_cast<double>(std::numeric_limits<T>::max())));
  if (std::isinf(T{1} / divisor)) return best.id;  // no other word has any weight
  const auto reference = static_cast<T>(best.log_probability);

  const auto& clusters = model_.plan().clusters;
  std::vector<MassBounds> masses(clusters.size());
  std::vector<bool> is_exact(clusters.size());
  size_t weighed = clusters.size();  // the cluster whose weights the query's memory holds
  const auto weigh = [&](size_t i) -> Status {
    if (weighed == i) return Status();
    KINGLET_RETURN_IF_ERROR(OpenCluster(frame, i));
    masses[i] = MassBounds::Exactly(WeighWords(frame, i, reference, divisor));
    is_exact[i] = true;
    weighed = i;
    return Status();
  };
  for (size_t i = clusters.size(); i-- > 0;) {  // the head, most often the choice, last
    if (open_.Contains(i)) {
      KINGLET_RETURN_IF_ERROR(weigh(i));
    } else {
      masses[i] = BoundMass(LogShare(frame, i), clusters[i].size, static_cast<double>(divisor),
                            static_cast<double>(reference));
    }
  }
  const double uniform = UniformDraw(seed, frame.position, 0);
  std::optional<size_t> chosen = ChooseCluster(masses, uniform);
  while (!chosen) {  // each time one cluster more is known exactly
    size_t widest = clusters.size();
    for (size_t i = 0; i < clusters.size(); ++i) {
      if (is_exact[i]) continue;
      if (widest == clusters.size() ||
          masses[i].high - masses[i].low > masses[widest].high - masses[widest].low) {
        widest = i;
      }
    }
    KINGLET_RETURN_IF_ERROR(weigh(widest));
    chosen = ChooseCluster(masses, uniform);
  }
  KINGLET_RETURN_IF_ERROR(weigh(*chosen));

  const double target = UniformDraw(seed, frame.position, 1) * masses[*chosen].low;
  double sum = 0;
  uint32_t last = 0;
  for (uint32_t i = 0; i < clusters[*chosen].size; ++i) {
    sum += static_cast<double>(memory_.words[i]);
    if (memory_.words[i] > T{0}) last = i;
    if (sum > target) break;
  }
  return clusters[*chosen].first + last;
}

template <class T>
template <class Out>
Status Distribution<T>::WriteAll(StreamFrame& frame, std::span<Out> out, bool exponentiate) {
  KINGLET_RETURN_IF_ERROR(ComputeAll(frame));
  const auto& clusters = model_.plan().clusters;
  // From here on nothing allocates: output is written wholly or not at all.
  for (size_t index = 0; index < clusters.size(); ++index) {
    const std::span<Out> part = out.subspan(clusters[index].first, clusters[index].size);
    T* words;
    if constexpr (std::is_same_v<Out, T>) {
      words = part.data();
    } else {
      memory_.words.resize(part.size());
      words = memory_.words.data();
    }
    WriteWords(frame, index, words);
    if (exponentiate) Exponentiate({words, part.size()});
    if constexpr (!std::is_same_v<Out, T>) {
      std::transform(words, words + part.size(), part.begin(),
                     [](T word) { return static_cast<Out>(word); });
    }
  }
  if (exponentiate) work_.arithmetic.others += static_cast<double>(out.size());
  return Status();
}

template <class T>
template <class Out>
Status Distribution<T>::LogProbabilities(StreamFrame& frame, std::span<Out> out) {
  return WriteAll(frame, out, false);
}

template <class T>
template <class Out>
Status Distribution<T>::Probabilities(StreamFrame& frame, std::span<Out> out) {
  return WriteAll(frame, out, true);
}

template struct QueryMemory<float>;
template struct QueryMemory<double>;
template class Distribution<float>;
template class Distribution<double>;
template Status Distribution<float>::LogProbabilities(StreamFrame&, std::span<float>);
template Status Distribution<float>::LogProbabilities(StreamFrame&, std::span<double>);
template Status Distribution<double>::LogProbabilities(StreamFrame&, std::span<float>);
template Status Distribution<double>::LogProbabilities(StreamFrame&, std::span<double>);
template Status Distribution<float>::Probabilities(StreamFrame&, std::span<float>);
template Status Distribution<float>::Probabilities(StreamFrame&, std::span<double>);
template Status Distribution<double>::Probabilities(StreamFrame&, std::span<float>);
template Status Distribution<double>::Probabilities(StreamFrame&, std::span<double>);

}  // namespace kinglet

// Queries to several streams at once.
#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "runtime/queries/distribution.h"

namespace kinglet {
namespace {

// The streams, by number, that need the next steps, and their frames, side by side as RunSteps
// wants them.
class Needing {
 public:
  void Add(size_t stream, const StreamFrame& frame) {
    streams_[count_] = stream;
    frames_[count_++] = frame;
  }
  bool empty() const { return count_ == 0; }
  std::span<const size_t> streams() const { return {streams_.data(), count_}; }
  std::span<StreamFrame> frames() { return {frames_.data(), count_}; }

 private:
  std::array<size_t, kLanesTogether> streams_{};
  std::array<StreamFrame, kLanesTogether> frames_{};
  size_t count_ = 0;
};

}  // namespace

template <class T>
template <class Needs, class Take>
Status Distribution<T>::Open(std::span<Asked> asked, StepRange steps,
                             std::initializer_list<BufferId> left, const Needs& needs,
                             const Take& take) {
  Needing needing;
  for (size_t i = 0; i < asked.size(); ++i) {
    if (needs(*asked[i].distribution)) needing.Add(i, asked[i].frame);
  }
  if (needing.empty()) return Status();
  const Distribution& any = *asked.front().distribution;
  KINGLET_RETURN_IF_ERROR(RunSteps(any.model_, steps, needing.frames(), any.execution_));
  if (any.execution_.device) {
    KINGLET_RETURN_IF_ERROR(any.execution_.device->Fetch(needing.frames(), left));
  }
  Status status;
  for (const size_t i : needing.streams()) {
    const Status taken = take(*asked[i].distribution, asked[i].frame);
    if (status.ok()) status = taken;
  }
  return status;
}

template <class T>
Status Distribution<T>::OpenCluster(std::span<Asked> asked, size_t index) {
  const ClusterPlan& cluster = asked.front().distribution->model_.plan().clusters[index];
  return Open(
      asked, cluster.steps, {cluster.logits, cluster.normaliser, cluster.blocks},
      [index](const Distribution& stream) { return !stream.open_.Contains(index); },
      [index](Distribution& stream, const StreamFrame& frame) {
        return stream.TakeCluster(frame, index);
      });
}

template <class T>
Status Distribution<T>::OpenCache(std::span<Asked> asked) {
  const std::optional<CachePlan>& cache = asked.front().distribution->model_.plan().cache;
  if (cache) {
    KINGLET_RETURN_IF_ERROR(Open(
        asked, cache->steps, {cache->words, cache->weights, cache->total},
        [](const Distribution& stream) { return !stream.cache_open_; },
        [](Distribution& stream, const StreamFrame& frame) { return stream.TakeCache(frame); }));
  }
  if (asked.size() == 1 && asked.front().distribution->HasTable()) return Status();
  for (size_t i = 0; i < asked.size(); ++i) {
    Distribution& stream = *asked[i].distribution;
    auto& table = stream.memory_.tables[i];
    if (!stream.HasTable() || stream.table_ != &table) stream.FillTable(asked[i].frame, table);
  }
  return Status();
}

template <class T>
Status Distribution<T>::FetchOpened(const StreamFrame& frame) {
  const auto& clusters = model_.plan().clusters;
  for (size_t i = 0; i < clusters.size(); ++i) {
    if (!open_.Contains(i)) continue;
    const std::array<BufferId, 3> left = {clusters[i].logits, clusters[i].normaliser,
                                          clusters[i].blocks};
    KINGLET_RETURN_IF_ERROR(execution_.device->Fetch({&frame, 1}, left));
  }
  if (!cache_open_ || !model_.plan().cache) return Status();
  const CachePlan& cache = *model_.plan().cache;
  const std::array<BufferId, 2> words = {cache.words, cache.weights};
  return execution_.device->Fetch({&frame, 1}, words);
}

template <class T>
Status Distribution<T>::ComputeAll(std::span<Asked> asked) {
  const size_t clusters = asked.front().distribution->model_.plan().clusters.size();
  for (size_t i = 0; i < clusters; ++i) KINGLET_RETURN_IF_ERROR(OpenCluster(asked, i));
  return OpenCache(asked);
}

template <class T>
Status Distribution<T>::LogProbabilityOf(std::span<Asked> asked, std::span<const uint32_t> ids,
                                         std::span<double> out) {
  KINGLET_RETURN_IF_ERROR(OpenCluster(asked, 0));
  const Distribution& any = *asked.front().distribution;
  std::array<Asked, kLanesTogether> same{};
  for (size_t index = 1; index < any.model_.plan().clusters.size(); ++index) {
    size_t count = 0;
    for (size_t i = 0; i < asked.size(); ++i) {
      if (any.ClusterOf(ids[i]) == index) same[count++] = asked[i];
    }
    if (count > 0) KINGLET_RETURN_IF_ERROR(OpenCluster({same.data(), count}, index));
  }
  KINGLET_RETURN_IF_ERROR(OpenCache(asked));
  for (size_t i = 0; i < asked.size(); ++i) {
    KINGLET_RETURN_IF_ERROR(asked[i].distribution->LogProbabilitiesOf(
        asked[i].frame, ids.subspan(i, 1), out.subspan(i, 1)));
  }
  return Status();
}

template <class T>
Status Distribution<T>::TopK(std::span<Asked> asked, uint32_t k,
                             std::span<std::vector<Candidate>> out) {
  if (k == 0) {
    for (std::vector<Candidate>& best : out) best.clear();
    return Status();
  }
  KINGLET_RETURN_IF_ERROR(OpenCluster(asked, 0));
  KINGLET_RETURN_IF_ERROR(OpenCache(asked));
  const Plan& plan = asked.front().distribution->model_.plan();
  std::vector<BestCandidates> best(asked.size(), BestCandidates(std::min(k, plan.vocabulary_size)));
  for (size_t i = 0; i < asked.size(); ++i) {
    asked[i].distribution->OfferWords(asked[i].frame, 0, best[i]);
  }
  std::array<Asked, kLanesTogether> opening{};
  std::array<size_t, kLanesTogether> streams{};
  std::array<T, kLanesTogether> heaviest{};
  for (size_t index = 1; index < plan.clusters.size(); ++index) {
    size_t count = 0;
    for (size_t i = 0; i < asked.size(); ++i) {
      Distribution& distribution = *asked[i].distribution;
      // Had one word the whole cluster.
      const T cluster = distribution.ClusterLogProbability(asked[i].frame, index);
      heaviest[count] = distribution.HeaviestCached(index);
      const T bound = distribution.Bound(cluster, heaviest[count]);
      if (!best[i].CouldTake(static_cast<double>(bound))) continue;
      streams[count] = i;
      opening[count++] = asked[i];
    }
    if (count > 0) KINGLET_RETURN_IF_ERROR(OpenCluster({opening.data(), count}, index));
    for (size_t n = 0; n < count; ++n) {
      Distribution& distribution = *opening[n].distribution;
      // Now the normaliser says how probable its best word is: often none has to be looked at.
      const T word = distribution.BestLogProbability(opening[n].frame, index);
      const T bound = distribution.Bound(word, heaviest[n]);
      if (!best[streams[n]].CouldTake(static_cast<double>(bound))) continue;
      distribution.OfferWords(opening[n].frame, index, best[streams[n]]);
    }
  }
  for (size_t i = 0; i < asked.size(); ++i) out[i] = std::move(best[i]).Sorted();
  return Status();
}

template <class T>
Status Distribution<T>::Sample(std::span<Asked> asked, std::span<const uint64_t> seeds,
                               double temperature, std::span<uint32_t> out) {
  std::array<std::vector<Candidate>, kLanesTogether> best;
  KINGLET_RETURN_IF_ERROR(TopK(asked, 1, std::span(best).first(asked.size())));
  for (size_t i = 0; i < asked.size(); ++i) {
    KINGLET_ASSIGN_OR_RETURN(out[i], asked[i].distribution->SampleBelow(
                                         asked[i].frame, best[i].front(), seeds[i], temperature));
  }
  return Status();
}

template <class T>
Status Distribution<T>::TakeAnswer(const StreamFrame& frame, const DeviceAnswer& answer) {
  const auto& clusters = model_.plan().clusters;
  if (answer.not_finite) {
    return *answer.not_finite < clusters.size() ? ClusterNotFinite(frame, *answer.not_finite)
                                                : CacheNotFinite(frame);
  }
  for (size_t i = 0; i < clusters.size(); ++i) {
    if ((answer.clusters >> i & 1) != 0) work_.clusters.Insert(i);
  }
  work_.cache = model_.plan().cache.has_value() && answer.clusters != 0;
  CountWords(answer.looked_into, 0);
  return Status();
}

// The other members are instantiated in distribution.cc.
template <class T>
using AskedSpan = std::span<typename Distribution<T>::Asked>;
template Status Distribution<float>::OpenCluster(AskedSpan<float>, size_t);
template Status Distribution<double>::OpenCluster(AskedSpan<double>, size_t);
template Status Distribution<float>::OpenCache(AskedSpan<float>);
template Status Distribution<double>::OpenCache(AskedSpan<double>);
template Status Distribution<float>::FetchOpened(const StreamFrame&);
template Status Distribution<double>::FetchOpened(const StreamFrame&);
template Status Distribution<float>::TakeAnswer(const StreamFrame&, const DeviceAnswer&);
template Status Distribution<double>::TakeAnswer(const StreamFrame&, const DeviceAnswer&);
template Status Distribution<float>::ComputeAll(AskedSpan<float>);
template Status Distribution<double>::ComputeAll(AskedSpan<double>);
template Status Distribution<float>::LogProbabilityOf(AskedSpan<float>, std::span<const uint32_t>,
                                                      std::span<double>);
template Status Distribution<double>::LogProbabilityOf(AskedSpan<double>, std::span<const uint32_t>,
                                                       std::span<double>);
template Status Distribution<float>::TopK(AskedSpan<float>, uint32_t,
                                          std::span<std::vector<Candidate>>);
template Status Distribution<double>::TopK(AskedSpan<double>, uint32_t,
                                           std::span<std::vector<Candidate>>);
template Status Distribution<float>::Sample(AskedSpan<float>, std::span<const uint64_t>, double,
                                            std::span<uint32_t>);
template Status Distribution<double>::Sample(AskedSpan<double>, std::span<const uint64_t>, double,
                                             std::span<uint32_t>);

}  // namespace kinglet

#include "runtime/queries/distribution.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <type_traits>

#include "kernels/cluster_of.h"
#include "kernels/device_program.h"
#include "kernels/functions.h"

namespace kinglet {
namespace {

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

// The indices of the streams that need the next nodes, and their frames in one array, as RunNodes
// takes them.
class NeedingStreams {
 public:
  void Add(size_t stream, StreamFrame frame, LogitsPlace place) {
    frame.logits = place;
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
Distribution<T>::Distribution(const Model& model, EmptyCache empty_cache, Execution& execution,
                              QueryMemory<T>& memory)
    : model_(model),
      execution_(execution),
      cache_(model, empty_cache),
      functions_(FunctionsOf<T>(model)),
      memory_(memory) {}

template <class T>
void Distribution<T>::Invalidate() {
  opened_ = {};
  dropped_ = {};
  cache_.Invalidate();
}

// A token takes two differences, a comparison and the sum with the cluster's own log p. Then a sum
// with log(1 - lambda), or, if the cache holds the token, two products, a sum, a quotient, an
// exponential and a logarithm.
template <class T>
void Distribution<T>::CountTokens(double tokens, double held) {
  const double kept = cache_.is_in_model() ? tokens - held : 0;
  work_.arithmetic += {2 * held, 3 * tokens + kept + held, tokens + 3 * held};
}

template <class T>
template <class Needs, class Take>
Status Distribution<T>::Open(std::span<QueriedStream<T>> streams, NodeRange nodes,
                             LogitsPlace place, std::initializer_list<BufferId> results,
                             const Needs& needs, const Take& take) {
  NeedingStreams needing;
  for (size_t i = 0; i < streams.size(); ++i) {
    if (needs(*streams[i].distribution)) needing.Add(i, streams[i].frame, place);
  }
  if (needing.empty()) return Status();
  const Distribution& any = *streams.front().distribution;
  KINGLET_RETURN_IF_ERROR(RunNodes(any.model_, nodes, needing.frames(), any.execution_));
  if (any.execution_.device) {
    KINGLET_RETURN_IF_ERROR(any.execution_.device->Fetch(needing.frames(), results));
  }
  Status status;
  for (const size_t i : needing.streams()) {
    const Status taken = take(*streams[i].distribution, streams[i].frame);
    if (status.ok()) status = taken;
  }
  return status;
}

template <class T>
Status Distribution<T>::OpenCluster(std::span<QueriedStream<T>> streams, size_t index,
                                    LogitsPlace place) {
  const ClusterPlan& cluster = streams.front().distribution->plan().clusters[index];
  KINGLET_RETURN_IF_ERROR(Open(
      streams, cluster.nodes, place,
      {cluster.logits, cluster.normaliser, cluster.tiles.largest, cluster.tiles.sums},
      [index](const Distribution& stream) { return !stream.opened_.Contains(index); },
      [index, place](Distribution& stream, const StreamFrame& frame) {
        return stream.TakeCluster(frame, index, place);
      }));
  if (place.is_nowhere) return Status();
  for (QueriedStream<T>& stream : streams) {
    stream.distribution->NeedLogits(stream.frame, index, 0, cluster.size);
    stream.distribution->dropped_.Erase(index);
  }
  return Status();
}

template <class T>
Result<const T*> Distribution<T>::OpenClusterAt(QueriedStream<T>& stream, size_t index, T* logits) {
  Distribution& own = *stream.distribution;
  const std::span<QueriedStream<T>> alone(&stream, 1);
  const auto in_frame = [&]() -> Result<const T*> {
    KINGLET_RETURN_IF_ERROR(OpenCluster(alone, index));
    return own.View(stream.frame, index).logits;
  };
  if constexpr (!std::is_same_v<T, float>) {
    return in_frame();
  } else {
    const std::optional<size_t> maker = own.MakerOfLogits(index);
    const bool is_open = own.opened_.Contains(index);
    if (!maker || (is_open && !own.dropped_.Contains(index))) return in_frame();
    StreamFrame frame = stream.frame;
    frame.logits.answer = logits;
    if (is_open) {
      own.NeedLogits(frame, index, 0, own.plan().clusters[index].size);
      return logits;
    }
    const NodeRange nodes = own.plan().clusters[index].nodes;
    KINGLET_RETURN_IF_ERROR(
        RunNodes(own.model_, {nodes.begin, *maker}, {&stream.frame, 1}, own.execution_));
    const auto& are_finite = own.model_.kernels()[*maker].logits.are_finite;
    if (!are_finite || !are_finite(stream.frame)) return in_frame();
    KINGLET_RETURN_IF_ERROR(
        RunAllNodes(own.model_, {*maker, nodes.end}, {&frame, 1}, own.execution_));
    KINGLET_RETURN_IF_ERROR(own.TakeCluster(frame, index, kLogitsNowhere));
    return logits;
  }
}

template <class T>
Status Distribution<T>::TakeCluster(const StreamFrame& frame, size_t index, LogitsPlace place) {
  work_.clusters.Insert(index);
  const T* normaliser = model_.layout()[plan().clusters[index].normaliser].template At<T>(frame);
  if (!std::isfinite(normaliser[0]) || !std::isfinite(normaliser[1])) {
    return ClusterNotFinite(frame, index);
  }
  opened_.Insert(index);
  if (place.is_nowhere && MakerOfLogits(index)) dropped_.Insert(index);
  return Status();
}

template <class T>
std::optional<size_t> Distribution<T>::MakerOfLogits(size_t index) const {
  if (execution_.device) return std::nullopt;
  return kinglet::MakerOfLogits(model_.kernels(), plan().clusters[index].nodes);
}

template <class T>
std::optional<size_t> Distribution<T>::ClusterMadeInAnswer() const {
  if (execution_.device) return std::nullopt;
  return kinglet::ClusterMadeInAnswer(plan(), model_.kernels());
}

template <class T>
void Distribution<T>::NeedLogits(const StreamFrame& frame, size_t index, uint64_t first,
                                 uint64_t count) const {
  if (!dropped_.Contains(index)) return;
  const LogitMaker& maker = model_.kernels()[*MakerOfLogits(index)].logits;
  if (count != plan().clusters[index].size) return maker.make(frame, first, count);
  constexpr size_t kEach = 16 * kSumTile;
  const auto make = [&](Chunks chunks) {
    const uint64_t begin = chunks.begin * kEach,
                   end = std::min<uint64_t>(chunks.end * kEach, count);
    maker.make(frame, begin, end - begin);
  };
  RunChunks((count + kEach - 1) / kEach, make, execution_.team.get());
}

template <class T>
void Distribution<T>::NeedLogitOf(const StreamFrame& frame, uint32_t id) const {
  const size_t cluster = ClusterOf(id);
  NeedLogits(frame, cluster, id - plan().clusters[cluster].first, 1);
}

template <class T>
Status Distribution<T>::ClusterNotFinite(const StreamFrame& frame, size_t index) const {
  return Status::Refusal(KINGLET_NOT_FINITE, "session",
                         "logits of cluster " + std::to_string(index) + " at position " +
                             std::to_string(frame.position),
                         "finite numbers", "an overflow in the model's own arithmetic");
}

template <class T>
Status Distribution<T>::ComputeCache(std::span<QueriedStream<T>> streams) {
  const auto& cache = streams.front().distribution->plan().cache;
  if (!cache) return Status();
  return Open(
      streams, cache->nodes, kLogitsInBuffer, {cache->tokens, cache->weights, cache->total},
      [](const Distribution& stream) { return !stream.cache_.computed(); },
      [](Distribution& stream, const StreamFrame& frame) {
        return stream.cache_.TakeWeights(frame, stream.work_);
      });
}

template <class T>
Status Distribution<T>::OpenCache(std::span<QueriedStream<T>> streams) {
  KINGLET_RETURN_IF_ERROR(ComputeCache(streams));
  if (streams.size() == 1 && streams.front().distribution->cache_.HasTable()) return Status();
  for (size_t i = 0; i < streams.size(); ++i) {
    Distribution& stream = *streams[i].distribution;
    auto& table = stream.memory_.tables[i];
    if (!stream.cache_.HasTable(table)) stream.cache_.FillTable(streams[i].frame, table);
  }
  return Status();
}

template <class T>
Status Distribution<T>::OpenClusters(std::span<QueriedStream<T>> streams, LogitsPlace place) {
  const size_t clusters = streams.front().distribution->plan().clusters.size();
  for (size_t i = 0; i < clusters; ++i) KINGLET_RETURN_IF_ERROR(OpenCluster(streams, i, place));
  return Status();
}

template <class T>
Status Distribution<T>::ComputeAll(std::span<QueriedStream<T>> streams) {
  KINGLET_RETURN_IF_ERROR(OpenClusters(streams));
  return OpenCache(streams);
}

template <class T>
void Distribution<T>::CountAnswer(uint64_t clusters, uint32_t looked_into) {
  for (size_t i = 0; i < plan().clusters.size(); ++i) {
    if ((clusters >> i & 1) != 0) work_.clusters.Insert(i);
  }
  work_.cache = cache_.is_in_model() && clusters != 0;
  CountTokens(looked_into, 0);
}

template <class T>
Status Distribution<T>::NotFinite(const StreamFrame& frame, size_t cluster) const {
  return cluster < plan().clusters.size() ? ClusterNotFinite(frame, cluster)
                                          : cache_.NotFinite(frame);
}

template <class T>
Status Distribution<T>::FetchOpened(const StreamFrame& frame) {
  const auto& clusters = plan().clusters;
  for (size_t i = 0; i < clusters.size(); ++i) {
    if (!opened_.Contains(i)) continue;
    const std::array<BufferId, 4> results = {clusters[i].logits, clusters[i].normaliser,
                                             clusters[i].tiles.largest, clusters[i].tiles.sums};
    KINGLET_RETURN_IF_ERROR(execution_.device->Fetch({&frame, 1}, results));
  }
  if (!cache_.computed()) return Status();
  const std::array<BufferId, 2> pairs = {plan().cache->tokens, plan().cache->weights};
  return execution_.device->Fetch({&frame, 1}, pairs);
}

template <class T>
size_t Distribution<T>::ClusterOf(uint32_t id) const {
  const auto& clusters = plan().clusters;
  return kinglet::ClusterOf(id, static_cast<uint32_t>(clusters.size()),
                            [&](uint32_t i) { return clusters[i].first; });
}

template <class T>
T Distribution<T>::ClusterLogProbability(const StreamFrame& frame, size_t index) const {
  if (index == 0) return T{0};
  const auto& clusters = plan().clusters;
  const T* logits = model_.layout()[clusters[0].logits].template At<T>(frame);
  const T* normaliser = model_.layout()[clusters[0].normaliser].template At<T>(frame);
  return (logits[clusters[index].parent_logit] - normaliser[0]) - normaliser[1];
}

template <class T>
ClusterView<T> Distribution<T>::View(const StreamFrame& frame, size_t index) const {
  const ClusterPlan& cluster = plan().clusters[index];
  const BufferLayout& layout = model_.layout();
  const T* normaliser = layout[cluster.normaliser].template At<T>(frame);
  return {index,
          cluster.first,
          cluster.size,
          layout[cluster.logits].template At<T>(frame),
          layout[cluster.tiles.largest].template At<T>(frame),
          layout[cluster.tiles.sums].template At<T>(frame),
          normaliser[2],
          {normaliser[0], normaliser[1], ClusterLogProbability(frame, index), cache_.Keep()}};
}

template class Distribution<float>;
template class Distribution<double>;

}  // namespace kinglet

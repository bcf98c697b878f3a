#include "runtime/queries/token_probabilities.h"

#include <algorithm>
#include <array>
#include <optional>
#include <type_traits>

namespace kinglet {
namespace {

// Tokens that one thread computes at a time.
constexpr size_t kTokensPerChunk = 4096;

// The most tokens whose dropped logits are made again one by one.
constexpr size_t kFewTokens = 64;

// Calls work(begin, count) for parts of n tokens, on the session's threads.
template <class Work>
void ForChunksOfTokens(size_t n, WorkerTeam* team, const Work& work) {
  const auto run = [&](Chunks chunks) {
    const size_t begin = chunks.begin * kTokensPerChunk;
    work(begin, std::min(chunks.end * kTokensPerChunk, n) - begin);
  };
  RunChunks((n + kTokensPerChunk - 1) / kTokensPerChunk, run, team);
}

// log p of a token whose weight in the cache is `weight`. REQUIRES: the token's cluster and the
// head are open.
template <class T>
double ReadLogProbability(QueriedStream<T>& stream, uint32_t id, T weight) {
  Distribution<T>& distribution = *stream.distribution;
  const size_t cluster = distribution.ClusterOf(id);
  const T softmax = distribution.View(stream.frame, cluster).SoftmaxLogProbability(id);
  if (cluster > 0) distribution.work().arithmetic += {0, 2, 0};  // log p of the cluster
  distribution.CountTokens(1, weight != T{0} ? 1 : 0);
  return static_cast<double>(distribution.cache().MixedLogProbability(softmax, weight));
}

// log p of a token whose weight in the cache need not be in a table. REQUIRES: the token's cluster
// and the head are open; the cache's weights are computed.
template <class T>
double ReadOneLogProbability(QueriedStream<T>& stream, uint32_t id) {
  const NeuralCacheMix<T>& cache = stream.distribution->cache();
  return ReadLogProbability(
      stream, id, cache.HasTable() ? cache.WeightOf(id) : cache.SumWeightOf(stream.frame, id));
}

// Calls write(), which writes log p of the cluster's tokens to `out`, and then replaces those of
// the few tokens that the cache holds. `out` may be the logits' memory.
template <class T, class Write>
void WriteAndMix(QueriedStream<T>& stream, const ClusterView<T>& view, T* out, const Write& write) {
  Distribution<T>& distribution = *stream.distribution;
  const QueryMemory<T>& memory = distribution.memory();
  const size_t held =
      distribution.cache().MixHeldTokens(view, distribution.functions(), distribution.memory());
  write();
  for (size_t i = 0; i < held; ++i) out[memory.held_ids[i] - view.first] = memory.held_mixed[i];
  distribution.CountTokens(static_cast<double>(held), static_cast<double>(held));
}

template <class T>
void WriteTokens(QueriedStream<T>& stream, const ClusterView<T>& view, T* out) {
  Distribution<T>& distribution = *stream.distribution;
  WriteAndMix(stream, view, out, [&] {
    ForChunksOfTokens(view.size, distribution.team(), [&](size_t begin, size_t count) {
      distribution.functions().log_probabilities(view.logits + begin, count, view.terms,
                                                 out + begin);
    });
  });
  distribution.CountTokens(view.size, 0);
  if (view.index > 0) distribution.work().arithmetic += {0, 2, 0};  // log p of the cluster
}

}  // namespace

template <class T>
Status OpenClustersOfTokens(std::span<QueriedStream<T>> streams, std::span<const uint32_t> ids) {
  KINGLET_RETURN_IF_ERROR(Distribution<T>::OpenCluster(streams, 0, kLogitsNowhere));
  const Distribution<T>& any = *streams.front().distribution;
  std::array<QueriedStream<T>, kLanesTogether> same;  // whose tokens are in one cluster
  for (size_t index = 1; index < any.plan().clusters.size(); ++index) {
    size_t count = 0;
    for (size_t i = 0; i < streams.size(); ++i) {
      if (any.ClusterOf(ids[i]) == index) same[count++] = streams[i];
    }
    if (count == 0) continue;
    KINGLET_RETURN_IF_ERROR(
        Distribution<T>::OpenCluster(std::span(same).first(count), index, kLogitsNowhere));
  }
  for (size_t i = 0; i < streams.size(); ++i) {
    streams[i].distribution->NeedLogitOf(streams[i].frame, ids[i]);
  }
  return Status();
}

template <class T>
Status LogProbabilityOfToken(std::span<QueriedStream<T>> streams, std::span<const uint32_t> ids,
                             std::span<double> out) {
  KINGLET_RETURN_IF_ERROR(OpenClustersOfTokens(streams, ids));
  KINGLET_RETURN_IF_ERROR(Distribution<T>::ComputeCache(streams));
  for (size_t i = 0; i < streams.size(); ++i) out[i] = ReadOneLogProbability(streams[i], ids[i]);
  return Status();
}

template <class T>
Status LogProbabilityInTurn(QueriedStream<T>& stream, bool has_weights, uint32_t id, double& out) {
  stream.distribution->InvalidateCache();
  if (has_weights) KINGLET_RETURN_IF_ERROR(stream.distribution->TakeCache(stream.frame));
  KINGLET_RETURN_IF_ERROR(Distribution<T>::ComputeCache({&stream, 1}));
  out = ReadOneLogProbability(stream, id);
  return Status();
}

template <class T>
Status LogProbabilitiesOfTokens(QueriedStream<T>& stream, std::span<const uint32_t> ids,
                                std::span<double> out) {
  if (ids.empty()) return Status();
  const Distribution<T>& distribution = *stream.distribution;
  const std::span<QueriedStream<T>> alone(&stream, 1);
  const LogitsPlace place = ids.size() > kFewTokens ? kLogitsInBuffer : kLogitsNowhere;
  KINGLET_RETURN_IF_ERROR(Distribution<T>::OpenCluster(alone, 0, place));
  ClusterSet opened;
  for (const uint32_t id : ids) {
    const size_t cluster = distribution.ClusterOf(id);
    if (!opened.Contains(cluster)) {
      KINGLET_RETURN_IF_ERROR(Distribution<T>::OpenCluster(alone, cluster, place));
    }
    opened.Insert(cluster);
    distribution.NeedLogitOf(stream.frame, id);
  }
  KINGLET_RETURN_IF_ERROR(Distribution<T>::OpenCache(alone));
  for (size_t i = 0; i < ids.size(); ++i) {
    out[i] = ReadLogProbability(stream, ids[i], distribution.cache().WeightOf(ids[i]));
  }
  return Status();
}

template <class T>
void WriteClusterTokens(QueriedStream<T>& stream, size_t cluster, T* out) {
  WriteTokens(stream, stream.distribution->View(stream.frame, cluster), out);
}

template <class T>
void WriteClusterSums(QueriedStream<T>& stream, size_t cluster, T* out) {
  Distribution<T>& distribution = *stream.distribution;
  const ClusterView<T> view = distribution.View(stream.frame, cluster);
  // Written so that the compiler makes vectors of it.
  const auto write = [&](const auto& add) {
    WriteAndMix(stream, view, out, [&] {
      ForChunksOfTokens(view.size, distribution.team(), [&](size_t begin, size_t count) {
        for (size_t i = begin; i < begin + count; ++i) {
          out[i] = add((view.logits[i] - view.terms.reference) - view.terms.log_sum);
        }
      });
    });
  };
  const T parent = view.terms.parent, keep = view.terms.keep;
  const bool is_mixed = distribution.cache().is_in_model();
  if (cluster > 0 && is_mixed) {
    write([parent, keep](T within) { return (parent + within) + keep; });
  } else if (cluster > 0) {
    write([parent](T within) { return parent + within; });
  } else if (is_mixed) {
    write([keep](T within) { return within + keep; });
  } else {
    write([](T within) { return within; });
  }
  const double sums = 2 + (cluster > 0 ? 1 : 0) + (is_mixed ? 1 : 0);
  distribution.work().arithmetic += {0, sums * view.size + (cluster > 0 ? 2 : 0), 0};
}

template <class T>
void Exponentiate(QueriedStream<T>& stream, std::span<T> out) {
  const Distribution<T>& distribution = *stream.distribution;
  ForChunksOfTokens(out.size(), distribution.team(), [&](size_t begin, size_t count) {
    distribution.functions().exponentials(out.data() + begin, count, out.data() + begin);
  });
}

template <class T, class Out>
Status WriteDistribution(QueriedStream<T>& stream, Scale scale, std::span<Out> out) {
  Distribution<T>& distribution = *stream.distribution;
  const std::span<QueriedStream<T>> alone(&stream, 1);
  const auto& clusters = distribution.plan().clusters;
  const auto part_of = [&](size_t index) {
    return out.subspan(clusters[index].first, clusters[index].size);
  };
  // The memory in which a cluster's tokens are computed: the output, if it has the type T.
  const auto tokens_of = [&](size_t index) {
    if constexpr (std::is_same_v<Out, T>) {
      return part_of(index).data();
    } else {
      distribution.memory().tokens.resize(clusters[index].size);
      return distribution.memory().tokens.data();
    }
  };
  const auto write = [&](const ClusterView<T>& view) {
    const std::span<Out> part = part_of(view.index);
    T* const tokens = tokens_of(view.index);
    WriteTokens(stream, view, tokens);
    if (scale == Scale::kProbability) Exponentiate(stream, std::span<T>(tokens, part.size()));
    if constexpr (!std::is_same_v<Out, T>) {
      std::transform(tokens, tokens + part.size(), part.begin(),
                     [](T token) { return static_cast<Out>(token); });
    }
  };
  const std::optional<size_t> in_answer = distribution.ClusterMadeInAnswer();
  for (size_t index = 0; index < clusters.size(); ++index) {
    if (index != in_answer) KINGLET_RETURN_IF_ERROR(Distribution<T>::OpenCluster(alone, index));
  }
  KINGLET_RETURN_IF_ERROR(Distribution<T>::OpenCache(alone));
  // Nothing after the last cluster's logits can fail, so the output is written completely or not at
  // all.
  if (in_answer) {
    KINGLET_ASSIGN_OR_RETURN(const T* const logits, Distribution<T>::OpenClusterAt(
                                                        stream, *in_answer, tokens_of(*in_answer)));
    ClusterView<T> view = distribution.View(stream.frame, *in_answer);
    view.logits = logits;
    write(view);
  }
  for (size_t index = 0; index < clusters.size(); ++index) {
    if (index != in_answer) write(distribution.View(stream.frame, index));
  }
  if (scale == Scale::kProbability) {
    distribution.work().arithmetic.others += static_cast<double>(out.size());
  }
  return Status();
}

template Status LogProbabilityOfToken(std::span<QueriedStream<float>>, std::span<const uint32_t>,
                                      std::span<double>);
template Status LogProbabilityOfToken(std::span<QueriedStream<double>>, std::span<const uint32_t>,
                                      std::span<double>);
template Status OpenClustersOfTokens(std::span<QueriedStream<float>>, std::span<const uint32_t>);
template Status OpenClustersOfTokens(std::span<QueriedStream<double>>, std::span<const uint32_t>);
template Status LogProbabilityInTurn(QueriedStream<float>&, bool, uint32_t, double&);
template Status LogProbabilityInTurn(QueriedStream<double>&, bool, uint32_t, double&);
template Status LogProbabilitiesOfTokens(QueriedStream<float>&, std::span<const uint32_t>,
                                         std::span<double>);
template Status LogProbabilitiesOfTokens(QueriedStream<double>&, std::span<const uint32_t>,
                                         std::span<double>);
template Status WriteDistribution(QueriedStream<float>&, Scale, std::span<float>);
template Status WriteDistribution(QueriedStream<float>&, Scale, std::span<double>);
template Status WriteDistribution(QueriedStream<double>&, Scale, std::span<float>);
template Status WriteDistribution(QueriedStream<double>&, Scale, std::span<double>);
template void WriteClusterTokens(QueriedStream<float>&, size_t, float*);
template void WriteClusterTokens(QueriedStream<double>&, size_t, double*);
template void WriteClusterSums(QueriedStream<float>&, size_t, float*);
template void WriteClusterSums(QueriedStream<double>&, size_t, double*);
template void Exponentiate(QueriedStream<float>&, std::span<float>);
template void Exponentiate(QueriedStream<double>&, std::span<double>);

}  // namespace kinglet

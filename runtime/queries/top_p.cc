#include "runtime/queries/top_p.h"

#include <algorithm>
#include <limits>

#include "kernels/functions.h"
#include "runtime/queries/token_probabilities.h"
#include "runtime/queries/upper_bound.h"

namespace kinglet {
namespace {

// The range of log p, in nats, whose tokens are collected and sorted at a time.
constexpr double kNatsTogether = 2;

// Tokens between two looks at whether the caller cancelled.
constexpr uint32_t kTokensTogether = 65536;

// Collects the tokens of one stream, the most probable first. All tokens of a cluster are computed
// when one of them may be next. No token is compared with a bound, so that a nucleus of nearly all
// tokens takes no more operations than the full distribution.
template <class T>
class NucleusSearch {
 public:
  explicit NucleusSearch(QueriedStream<T>& stream)
      : stream_(stream),
        distribution_(*stream.distribution),
        clusters_(distribution_.plan().clusters.size()) {}

  Result<std::vector<Candidate>> Find(double share) {
    const std::span<QueriedStream<T>> alone(&stream_, 1);
    KINGLET_RETURN_IF_ERROR(Distribution<T>::OpenCluster(alone, 0));
    KINGLET_RETURN_IF_ERROR(Distribution<T>::OpenCache(alone));
    BoundTails();
    const double wanted = share * distribution_.cache().Sum();
    double sum = 0;
    std::vector<Candidate> nucleus;
    constexpr T kLowest = -std::numeric_limits<T>::infinity();
    T above = std::numeric_limits<T>::infinity();
    for (T reach{-kNatsTogether}; above != kLowest; reach -= T{kNatsTogether}) {
      // Below this log p every probability is 0 in float.
      if (reach < T{ExpConstants::kUnderflow}) reach = kLowest;
      const size_t known = nucleus.size();
      KINGLET_RETURN_IF_ERROR(Collect(reach, above, nucleus));
      KINGLET_RETURN_IF_ERROR(SortByProbability(std::span(nucleus).subspan(known),
                                                [this] { return distribution_.TakeCancel(); }));
      for (size_t i = known; i < nucleus.size(); ++i) {
        sum += static_cast<double>(Exp(static_cast<T>(nucleus[i].log_probability)));
        arithmetic() += {0, 1, 1};
        if (sum < wanted) continue;
        nucleus.resize(i + 1);
        return nucleus;
      }
      above = reach;
    }
    return nucleus;
  }

 private:
  struct Cluster {
    T bound = std::numeric_limits<T>::infinity();  // at least the log p of every token
    std::vector<T> tokens;                         // log p of each token; empty until computed
  };

  void BoundTails() {
    for (size_t i = 1; i < clusters_.size(); ++i) {
      const T heaviest = distribution_.cache().HeaviestTokenOf(i, arithmetic());
      clusters_[i].bound = UpperBound(
          distribution_, distribution_.ClusterLogProbability(stream_.frame, i), heaviest);
    }
  }

  // Adds the tokens of reach <= log p < above. `above` is infinity in the first call.
  Status Collect(T reach, T above, std::vector<Candidate>& tokens) {
    for (size_t index = 0; index < clusters_.size(); ++index) {
      Cluster& cluster = clusters_[index];
      if (cluster.bound < reach) continue;
      const ClusterPlan& plan = distribution_.plan().clusters[index];
      if (cluster.tokens.size() < plan.size) {
        KINGLET_RETURN_IF_ERROR(Distribution<T>::OpenCluster({&stream_, 1}, index));
        cluster.tokens.resize(plan.size);
        WriteClusterSums(stream_, index, cluster.tokens.data());
      }
      for (uint32_t i = 0; i < plan.size; ++i) {
        if (i % kTokensTogether == 0) KINGLET_RETURN_IF_ERROR(distribution_.TakeCancel());
        const T token = cluster.tokens[i];
        if (token >= reach && token < above) {
          tokens.push_back({plan.first + i, static_cast<double>(token)});
        }
      }
    }
    return Status();
  }

  OperationTally& arithmetic() { return distribution_.work().arithmetic; }

  QueriedStream<T>& stream_;
  Distribution<T>& distribution_;
  std::vector<Cluster> clusters_;
};

template <class T>
Result<std::vector<Candidate>> SortAllTokens(QueriedStream<T>& stream) {
  KINGLET_RETURN_IF_ERROR(Distribution<T>::ComputeAll({&stream, 1}));
  Distribution<T>& distribution = *stream.distribution;
  std::vector<Candidate> all;
  all.reserve(distribution.plan().vocabulary_size);
  for (size_t i = 0; i < distribution.plan().clusters.size(); ++i) {
    std::vector<T>& tokens = distribution.memory().tokens;
    tokens.resize(distribution.plan().clusters[i].size);
    WriteClusterTokens(stream, i, tokens.data());
    for (const T token : tokens) {
      all.push_back({static_cast<uint32_t>(all.size()), static_cast<double>(token)});
    }
  }
  KINGLET_RETURN_IF_ERROR(
      SortByProbability(all, [&distribution] { return distribution.TakeCancel(); }));
  return all;
}

}  // namespace

template <class T>
Result<std::vector<Candidate>> FindTopP(QueriedStream<T>& stream, double share) {
  return share < 1 ? NucleusSearch<T>(stream).Find(share) : SortAllTokens(stream);
}

template Result<std::vector<Candidate>> FindTopP(QueriedStream<float>&, double);
template Result<std::vector<Candidate>> FindTopP(QueriedStream<double>&, double);

}  // namespace kinglet

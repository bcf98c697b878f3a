#include "runtime/queries/top_p.h"

#include <algorithm>
#include <limits>

#include "kernels/functions.h"
#include "runtime/queries/upper_bound.h"
#include "runtime/queries/word_probabilities.h"

namespace kinglet {
namespace {

// The range of log p, in nats, whose words are collected and sorted at a time.
constexpr double kNatsTogether = 2;

// Words between two looks at whether the caller cancelled.
constexpr uint32_t kWordsTogether = 65536;

// Collects the words of one stream, the most probable first. All words of a cluster are computed
// when one of them may be next. No word is compared with a bound, so that a nucleus of nearly all
// words takes no more operations than the full distribution.
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
    T bound = std::numeric_limits<T>::infinity();  // at least the log p of every word
    std::vector<T> words;                          // log p of each word; empty until computed
  };

  void BoundTails() {
    for (size_t i = 1; i < clusters_.size(); ++i) {
      const T heaviest = distribution_.cache().HeaviestWordOf(i, arithmetic());
      clusters_[i].bound = UpperBound(
          distribution_, distribution_.ClusterLogProbability(stream_.frame, i), heaviest);
    }
  }

  // Adds the words of reach <= log p < above. `above` is infinity in the first call.
  Status Collect(T reach, T above, std::vector<Candidate>& words) {
    for (size_t index = 0; index < clusters_.size(); ++index) {
      Cluster& cluster = clusters_[index];
      if (cluster.bound < reach) continue;
      const ClusterPlan& plan = distribution_.plan().clusters[index];
      if (cluster.words.size() < plan.size) {
        KINGLET_RETURN_IF_ERROR(Distribution<T>::OpenCluster({&stream_, 1}, index));
        cluster.words.resize(plan.size);
        WriteClusterSums(stream_, index, cluster.words.data());
      }
      for (uint32_t i = 0; i < plan.size; ++i) {
        if (i % kWordsTogether == 0) KINGLET_RETURN_IF_ERROR(distribution_.TakeCancel());
        const T word = cluster.words[i];
        if (word >= reach && word < above) {
          words.push_back({plan.first + i, static_cast<double>(word)});
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
Result<std::vector<Candidate>> SortAllWords(QueriedStream<T>& stream) {
  KINGLET_RETURN_IF_ERROR(Distribution<T>::ComputeAll({&stream, 1}));
  Distribution<T>& distribution = *stream.distribution;
  std::vector<Candidate> all;
  all.reserve(distribution.plan().vocabulary_size);
  for (size_t i = 0; i < distribution.plan().clusters.size(); ++i) {
    std::vector<T>& words = distribution.memory().words;
    words.resize(distribution.plan().clusters[i].size);
    WriteClusterWords(stream, i, words.data());
    for (const T word : words) {
      all.push_back({static_cast<uint32_t>(all.size()), static_cast<double>(word)});
    }
  }
  KINGLET_RETURN_IF_ERROR(
      SortByProbability(all, [&distribution] { return distribution.TakeCancel(); }));
  return all;
}

}  // namespace

template <class T>
Result<std::vector<Candidate>> FindTopP(QueriedStream<T>& stream, double share) {
  return share < 1 ? NucleusSearch<T>(stream).Find(share) : SortAllWords(stream);
}

template Result<std::vector<Candidate>> FindTopP(QueriedStream<float>&, double);
template Result<std::vector<Candidate>> FindTopP(QueriedStream<double>&, double);

}  // namespace kinglet

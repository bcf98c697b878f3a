#include "runtime/queries/top_p.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "kernels/functions.h"
#include "runtime/queries/logit_cut.h"
#include "runtime/queries/upper_bound.h"
#include "runtime/queries/word_probabilities.h"

namespace kinglet {
namespace {

// Words are looked for from the most probable on, so many nats further each time.
constexpr double kStep = 2;
// How far the sum of all probabilities can be from what it is without rounding, relatively: each
// logarithm is off by less than 2^-15, and a word's weight in the cache by 2^-24 for each pair.
constexpr double kSumSlack = 0x1p-12, kSlackOfPair = 0x1p-23;

struct ProbableWord {
  Candidate word;
  double p;
};

// Collects the words of one stream, the most probable first.
template <class T>
class NucleusSearch {
 public:
  explicit NucleusSearch(QueriedStream<T>& stream)
      : stream_(stream),
        distribution_(*stream.distribution),
        cuts_(distribution_.plan().clusters.size(), std::numeric_limits<T>::infinity()),
        is_entered_(cuts_.size()) {}

  Result<std::vector<Candidate>> Find(double share) {
    const std::span<QueriedStream<T>> alone(&stream_, 1);
    KINGLET_RETURN_IF_ERROR(Distribution<T>::OpenCluster(alone, 0));
    KINGLET_RETURN_IF_ERROR(Distribution<T>::OpenCache(alone));
    const auto& cache_plan = distribution_.plan().cache;
    const double slack = kSumSlack + (cache_plan ? kSlackOfPair * cache_plan->capacity : 0);
    const double sum = distribution_.cache().Sum();
    double low = share * sum * (1 - slack), high = share * sum * (1 + slack);
    std::optional<size_t> count;
    for (double reach = -kStep; !count; reach -= kStep) {
      // Beyond this float has no probability above 0.
      if (reach < ExpConstants::kUnderflow) reach = -std::numeric_limits<double>::infinity();
      KINGLET_RETURN_IF_ERROR(Collect(static_cast<T>(reach)));
      const size_t known = Sort(static_cast<T>(reach));
      const bool is_all = known == distribution_.plan().vocabulary_size;
      if (!is_all && (known == 0 || sums_[known - 1] < low)) continue;
      const size_t least = CountFor(low, known), most = CountFor(high, known);
      if (least == most && least <= known) {
        count = least;
      } else if (low < high) {
        KINGLET_ASSIGN_OR_RETURN(const double exact, SumOfAll());
        low = high = share * exact;
        count = CountFor(low, known);
        if (*count > known) count.reset();
      }
      if (!count && is_all) count = known;
    }
    std::vector<Candidate> nucleus(*count);
    std::transform(words_.begin(), words_.begin() + static_cast<std::ptrdiff_t>(*count),
                   nucleus.begin(), [](const ProbableWord& word) { return word.word; });
    return nucleus;
  }

 private:
  // Adds every word of log p >= reach that is not there yet, and perhaps words that the cache holds
  // of a lower one.
  Status Collect(T reach) {
    for (size_t i = 0; i < cuts_.size(); ++i) {
      if (!is_entered_[i]) {
        if (i > 0) {
          const T heaviest = distribution_.cache().HeaviestWordOf(i, arithmetic());
          const T cluster = distribution_.ClusterLogProbability(stream_.frame, i);
          if (UpperBound(distribution_, cluster, heaviest) < reach) continue;
        }
        KINGLET_RETURN_IF_ERROR(Distribution<T>::OpenCluster({&stream_, 1}, i));
        AddHeldWords(i);
        is_entered_[i] = true;
      }
      CollectOf(i, reach);
    }
    return Status();
  }

  void AddHeldWords(size_t index) {
    const ClusterView<T> cluster = distribution_.View(stream_.frame, index);
    QueryMemory<T>& memory = distribution_.memory();
    const size_t held =
        distribution_.cache().MixHeldWords(cluster, distribution_.functions(), memory);
    for (size_t i = 0; i < held; ++i) Add(memory.held_ids[i], memory.held_mixed[i]);
    distribution_.CountWords(static_cast<double>(held), static_cast<double>(held));
  }

  // The words of an open cluster outside the cache whose logits are between the new cut and the
  // one before.
  void CollectOf(size_t index, T reach) {
    const NeuralCacheMix<T>& cache = distribution_.cache();
    const ClusterView<T> cluster = distribution_.View(stream_.frame, index);
    const T cut = LogitCut(cluster.terms, reach, arithmetic());
    const T before = cuts_[index];
    cuts_[index] = cut;
    if (!(cut < before)) return;
    const T least_sum = LeastBlockSum(cluster.terms, reach);
    double found = 0, compared = 0;
    uint32_t n = 0;
    for (uint32_t begin = 0; begin < cluster.size; begin += n) {
      n = std::min(kSumBlock, cluster.size - begin);
      ++compared;
      if (cluster.block_sums[begin / kSumBlock] < least_sum) continue;
      compared += n;
      for (uint32_t i = begin; i < begin + n; ++i) {
        if (cluster.logits[i] < cut) continue;
        ++compared;
        const uint32_t id = cluster.first + i;
        if (cluster.logits[i] >= before || cache.WeightOf(id) != T{0}) continue;
        Add(id, cache.MixedLogProbability(cluster.SoftmaxLogProbability(id), T{0}));
        ++found;
      }
    }
    distribution_.CountWords(found, 0);
    arithmetic().others += compared;
  }

  void Add(uint32_t id, T log_probability) {
    words_.push_back(
        {{id, static_cast<double>(log_probability)}, static_cast<double>(Exp(log_probability))});
    arithmetic().others += 1;
  }

  // Sorts the words and adds them up. Returns how many of them are at least as probable as `reach`:
  // these are all words that are.
  size_t Sort(T reach) {
    std::sort(words_.begin(), words_.end(), [](const ProbableWord& a, const ProbableWord& b) {
      return MoreProbable(a.word, b.word);
    });
    sums_.resize(words_.size());
    double sum = 0;
    for (size_t i = 0; i < words_.size(); ++i) sums_[i] = sum += words_[i].p;
    arithmetic().additions += static_cast<double>(words_.size());
    const auto beyond =
        std::partition_point(words_.begin(), words_.end(), [reach](const ProbableWord& word) {
          return word.word.log_probability >= static_cast<double>(reach);
        });
    return static_cast<size_t>(beyond - words_.begin());
  }

  // The fewest of the first `known` words whose probabilities add up to at least `mass`; more than
  // `known` if they do not.
  size_t CountFor(double mass, size_t known) const {
    const auto end = sums_.begin() + static_cast<std::ptrdiff_t>(known);
    const auto reached = std::lower_bound(sums_.begin(), end, mass);
    return static_cast<size_t>(reached - sums_.begin()) + 1;
  }

  Result<double> SumOfAll() {
    KINGLET_RETURN_IF_ERROR(Distribution<T>::ComputeAll({&stream_, 1}));
    double sum = 0;
    for (size_t i = 0; i < cuts_.size(); ++i) {
      std::vector<T>& words = distribution_.memory().words;
      words.resize(distribution_.plan().clusters[i].size);
      WriteClusterWords(stream_, i, words.data());
      Exponentiate(stream_, std::span<T>(words));
      for (const T p : words) sum += static_cast<double>(p);
      const auto count = static_cast<double>(words.size());
      arithmetic() += {0, count, count};
    }
    return sum;
  }

  OperationTally& arithmetic() { return distribution_.work().arithmetic; }

  QueriedStream<T>& stream_;
  Distribution<T>& distribution_;
  std::vector<T> cuts_;           // by cluster: its words of larger logits are there
  std::vector<bool> is_entered_;  // by cluster: those that the cache holds are there
  std::vector<ProbableWord> words_;
  std::vector<double> sums_;  // of the probabilities of the words up to this one
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
  std::sort(all.begin(), all.end(), MoreProbable);
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

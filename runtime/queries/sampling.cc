#include "runtime/queries/sampling.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "format/digest.h"
#include "runtime/queries/top_k.h"
#include "runtime/queries/word_probabilities.h"

namespace kinglet {
namespace {

// The relative error that the sums of masses below may have; their rounding errors are below 2^-50.
constexpr double kSlack = 1e-9;

std::optional<size_t> DrawClusterExactly(std::span<const MassBounds> masses, double uniform) {
  double total = 0;
  for (const MassBounds& mass : masses) total += mass.low;
  const double target = uniform * total;
  double sum = 0;
  size_t last = 0;
  for (size_t i = 0; i < masses.size(); ++i) {
    sum += masses[i].low;
    if (sum > target) return i;
    if (masses[i].low > 0) last = i;
  }
  return last;  // reached through rounding only
}

// Draws a word after one stream, whose most probable word is known.
template <class T>
class WordSampler {
 public:
  // The stream outlives it. REQUIRES: 1 / temperature is finite.
  WordSampler(QueriedStream<T>& stream, const Candidate& best, uint64_t seed, T temperature)
      : stream_(stream),
        clusters_(stream.distribution->plan().clusters),
        reference_(static_cast<T>(best.log_probability)),
        temperature_(temperature),
        seed_(seed),
        masses_(clusters_.size()),
        is_exact_(clusters_.size()),
        weighed_(clusters_.size()) {}

  Result<uint32_t> Sample() {
    for (size_t i = clusters_.size(); i-- > 0;) {  // the head, most often the choice, last
      if (stream_.distribution->clusters_opened().Contains(i)) {
        KINGLET_RETURN_IF_ERROR(Weigh(i));
      } else {
        masses_[i] = BoundMass(LogProbabilityOfCluster(i), clusters_[i].size,
                               static_cast<double>(temperature_), static_cast<double>(reference_));
      }
    }
    const double uniform = UniformDraw(seed_, stream_.frame.position, 0);
    std::optional<size_t> drawn = DrawCluster(masses_, uniform);
    while (!drawn) {  // each time one cluster more is known exactly
      KINGLET_RETURN_IF_ERROR(Weigh(LeastKnownCluster()));
      drawn = DrawCluster(masses_, uniform);
    }
    KINGLET_RETURN_IF_ERROR(Weigh(*drawn));
    return DrawWord(*drawn);
  }

 private:
  double LogProbabilityOfCluster(size_t cluster) const {
    const Distribution<T>& distribution = *stream_.distribution;
    return distribution.cache().MixedLogProbabilityOfCluster(
        cluster, distribution.ClusterLogProbability(stream_.frame, cluster));
  }

  // Computes the weights of a cluster's words, to memory.words, and their sum in word order.
  Status Weigh(size_t cluster) {
    if (weighed_ == cluster) return Status();
    Distribution<T>& distribution = *stream_.distribution;
    KINGLET_RETURN_IF_ERROR(Distribution<T>::OpenCluster({&stream_, 1}, cluster));
    std::vector<T>& weights = distribution.memory().words;
    weights.resize(clusters_[cluster].size);
    WriteClusterWords(stream_, cluster, weights.data());
    for (T& word : weights) word = (word - reference_) / temperature_;
    Exponentiate(stream_, std::span<T>(weights));
    double sum = 0;
    for (const T weight : weights) sum += static_cast<double>(weight);
    const auto words = static_cast<double>(weights.size());
    // A difference and a sum, a quotient and an exponential for each word.
    distribution.work().arithmetic += {0, 2 * words, 2 * words};
    masses_[cluster] = MassBounds::Exactly(sum);
    is_exact_[cluster] = true;
    weighed_ = cluster;
    return Status();
  }

  // Of the clusters whose mass is not known exactly, the first with the widest bounds.
  size_t LeastKnownCluster() const {
    const auto width = [&](size_t i) { return masses_[i].high - masses_[i].low; };
    size_t widest = clusters_.size();
    for (size_t i = 0; i < clusters_.size(); ++i) {
      if (is_exact_[i]) continue;
      if (widest == clusters_.size() || width(i) > width(widest)) widest = i;
    }
    return widest;
  }

  // REQUIRES: the cluster was weighed last.
  uint32_t DrawWord(size_t cluster) const {
    const std::vector<T>& weights = stream_.distribution->memory().words;
    const double target = UniformDraw(seed_, stream_.frame.position, 1) * masses_[cluster].low;
    double sum = 0;
    uint32_t last = 0;
    for (uint32_t i = 0; i < clusters_[cluster].size; ++i) {
      sum += static_cast<double>(weights[i]);
      if (weights[i] > T{0}) last = i;
      if (sum > target) break;
    }
    return clusters_[cluster].first + last;
  }

  QueriedStream<T>& stream_;
  const std::vector<ClusterPlan>& clusters_;
  const T reference_, temperature_;
  const uint64_t seed_;
  std::vector<MassBounds> masses_;
  std::vector<bool> is_exact_;
  size_t weighed_;  // the cluster whose weights memory.words holds; clusters_.size(): none
};

}  // namespace

template <class T>
Status SampleWord(std::span<QueriedStream<T>> streams, std::span<const uint64_t> seeds,
                  double temperature, std::span<uint32_t> out) {
  std::array<std::vector<Candidate>, kLanesTogether> best;
  KINGLET_RETURN_IF_ERROR(FindTopK(streams, 1, std::span(best).first(streams.size())));
  const T divisor =
      static_cast<T>(std::min(temperature, static_cast<double>(std::numeric_limits<T>::max())));
  const bool is_greedy = std::isinf(T{1} / divisor);  // no other word has any weight
  std::array<uint32_t, kLanesTogether> drawn{};
  for (size_t i = 0; i < streams.size(); ++i) {
    drawn[i] = best[i].front().id;
    if (is_greedy) continue;
    WordSampler<T> sampler(streams[i], best[i].front(), seeds[i], divisor);
    KINGLET_ASSIGN_OR_RETURN(drawn[i], sampler.Sample());
  }
  std::copy_n(drawn.begin(), streams.size(), out.begin());
  return Status();
}

template Status SampleWord(std::span<QueriedStream<float>>, std::span<const uint64_t>, double,
                           std::span<uint32_t>);
template Status SampleWord(std::span<QueriedStream<double>>, std::span<const uint64_t>, double,
                           std::span<uint32_t>);

double UniformDraw(uint64_t seed, uint64_t position, uint64_t index) {
  const std::array<uint64_t, 3> key = {seed, position, index};
  const uint64_t bits = Digest64(std::as_bytes(std::span<const uint64_t>(key)));
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

MassBounds BoundMass(double log_probability, double words, double temperature, double reference) {
  const double exponent = 1 / temperature;
  const double log_mass = (log_probability - reference) * exponent;
  const double spread = (1 - exponent) * std::log(words);
  // A word's weight is exp of a float whose error is below 3e-7 of its terms; weights below
  // exp(-745) vanish whatever their error.
  const double slack = 1e-3 + 1e-6 * exponent * (1 + std::fabs(reference));
  // No word has more mass than the reference, which has 1: a cluster has at most one for each word.
  const double low = std::exp(log_mass + std::min(spread, 0.0) - slack);
  const double high = std::exp(log_mass + std::max(spread, 0.0) + slack);
  const double largest = words * (1 + kSlack);
  // At temperatures near the smallest double the bounds may be infinite or NaN: nothing is known.
  return {low > 0 && low <= largest ? low : 0, high < largest ? high : largest};
}

std::optional<size_t> DrawCluster(std::span<const MassBounds> masses, double uniform) {
  const bool exact = std::all_of(masses.begin(), masses.end(),
                                 [](const MassBounds& mass) { return mass.low == mass.high; });
  if (exact) return DrawClusterExactly(masses, uniform);

  MassBounds upto{0, 0}, beyond{0, 0};
  for (const MassBounds& mass : masses) {
    beyond.low += mass.low;
    beyond.high += mass.high;
  }
  const double slack = kSlack * beyond.high;
  bool after_previous = true;  // the draw is certainly not before cluster i
  for (size_t i = 0; i < masses.size() && after_previous; ++i) {
    upto.low += masses[i].low;
    upto.high += masses[i].high;
    beyond.low -= masses[i].low;
    beyond.high -= masses[i].high;
    if ((1 - uniform) * upto.low - uniform * beyond.high > slack) return i;
    after_previous = (1 - uniform) * upto.high - uniform * beyond.low < -slack;
  }
  return std::nullopt;
}

}  // namespace kinglet

#include "runtime/queries/sampling.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "format/digest.h"
#include "runtime/queries/token_probabilities.h"
#include "runtime/queries/top_k.h"
#include "runtime/queries/top_p.h"

namespace kinglet {
namespace {

// The relative error that sums of masses may have; their rounding errors are below 2^-50.
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

// Removes the tokens that are in the sorted list `excluded`.
void RemoveExcluded(const std::vector<uint32_t>& excluded, std::vector<Candidate>& tokens) {
  if (excluded.empty()) return;
  std::erase_if(tokens, [&](const Candidate& token) {
    return std::binary_search(excluded.begin(), excluded.end(), token.id);
  });
}

// Draws a token after one stream.
template <class T>
class TokenSampler {
 public:
  // `excluded` is sorted; `reference` is the largest log p of the tokens that are not excluded.
  // REQUIRES: 1 / temperature is finite; all references outlive the sampler.
  TokenSampler(QueriedStream<T>& stream, const std::vector<uint32_t>& excluded, double reference,
               uint64_t seed, T temperature)
      : stream_(stream),
        clusters_(stream.distribution->plan().clusters),
        excluded_(excluded),
        reference_(static_cast<T>(reference)),
        temperature_(temperature),
        seed_(seed),
        masses_(clusters_.size()),
        is_exact_(clusters_.size()),
        weighed_(clusters_.size()) {}

  // Draws from all tokens.
  Result<uint32_t> Sample() {
    KINGLET_RETURN_IF_ERROR(BoundMasses());
    const double uniform = UniformDraw(seed_, stream_.frame.position, 0);
    std::optional<size_t> drawn = DrawCluster(masses_, uniform);
    while (!drawn) {  // each iteration computes one more cluster exactly
      KINGLET_RETURN_IF_ERROR(Weigh(LeastKnownCluster()));
      drawn = DrawCluster(masses_, uniform);
    }
    KINGLET_RETURN_IF_ERROR(Weigh(*drawn));
    return DrawTokenOf(*drawn);
  }

  // Draws from the fewest tokens of `best`, the most probable first, whose weights reach the
  // fraction top_p of the weight of `best`.
  uint32_t SampleAmong(const std::vector<Candidate>& best, double top_p) {
    AddUp(best);
    const double wanted_weight = top_p * cumulative_.back();
    const auto reached = std::lower_bound(cumulative_.begin(), cumulative_.end(), wanted_weight);
    return DrawAmong(best, static_cast<size_t>(reached - cumulative_.begin()) + 1);
  }

  // Draws from the fewest tokens, the most probable first, whose weights reach the fraction top_p
  // of the total weight.
  Result<uint32_t> SampleNucleus(double top_p) {
    if (temperature_ == T{1} && excluded_.empty()) {  // then weights are probabilities
      KINGLET_ASSIGN_OR_RETURN(const std::vector<Candidate> best, FindTopP(stream_, top_p));
      AddUp(best);
      return DrawAmong(best, best.size());
    }
    KINGLET_RETURN_IF_ERROR(BoundMasses());
    const size_t all = stream_.distribution->plan().vocabulary_size - excluded_.size();
    std::vector<Candidate> best;
    for (size_t wanted = std::min(all, kFirstTokens);;
         wanted = std::min(all, kMoreTokens * wanted)) {
      const auto tokens = static_cast<uint32_t>(wanted + excluded_.size());
      KINGLET_RETURN_IF_ERROR(
          FindTopK(std::span(&stream_, 1), tokens, std::span(&best, 1), kLogitsInBuffer));
      RemoveExcluded(excluded_, best);
      best.resize(std::min(best.size(), wanted));
      AddUp(best);
      Nucleus nucleus = FindNucleus(cumulative_, wanted == all, masses_, top_p);
      while (nucleus.state == Nucleus::State::kNeedsMasses) {
        KINGLET_RETURN_IF_ERROR(Weigh(LeastKnownCluster()));
        nucleus = FindNucleus(cumulative_, wanted == all, masses_, top_p);
      }
      if (nucleus.state == Nucleus::State::kKnown) return DrawAmong(best, nucleus.tokens);
    }
  }

 private:
  // The number of most probable tokens to look at first, and the factor by which it then grows.
  static constexpr size_t kFirstTokens = 64, kMoreTokens = 4;

  double LogProbabilityOfCluster(size_t cluster) const {
    const Distribution<T>& distribution = *stream_.distribution;
    return distribution.cache().MixedLogProbabilityOfCluster(
        cluster, distribution.ClusterLogProbability(stream_.frame, cluster));
  }

  bool ExcludesSomeOf(size_t cluster) const {
    const uint32_t first = clusters_[cluster].first;
    const auto next = std::lower_bound(excluded_.begin(), excluded_.end(), first);
    return next != excluded_.end() && *next - first < clusters_[cluster].size;
  }

  // Bounds the mass of each cluster: exactly if the cluster is computed already, or if tokens of
  // the cluster are excluded.
  Status BoundMasses() {
    for (size_t i = clusters_.size(); i-- > 0;) {  // the head, most often the choice, last
      if (stream_.distribution->clusters_opened().Contains(i) || ExcludesSomeOf(i)) {
        KINGLET_RETURN_IF_ERROR(Weigh(i));
      } else {
        masses_[i] = BoundMass(LogProbabilityOfCluster(i), clusters_[i].size,
                               static_cast<double>(temperature_), static_cast<double>(reference_));
      }
    }
    return Status();
  }

  // Replaces each log p in `weights` by the weight exp((log p - reference) / temperature).
  void WriteWeights(std::span<T> weights) {
    for (T& token : weights) token = (token - reference_) / temperature_;
    Exponentiate(stream_, weights);
    const auto tokens = static_cast<double>(weights.size());
    // A difference and a sum, a quotient and an exponential for each token.
    stream_.distribution->work().arithmetic += {0, 2 * tokens, 2 * tokens};
  }

  // Computes the weights of a cluster's tokens, to memory.tokens, and their sum in token order.
  Status Weigh(size_t cluster) {
    if (weighed_ == cluster) return Status();
    Distribution<T>& distribution = *stream_.distribution;
    KINGLET_RETURN_IF_ERROR(Distribution<T>::OpenCluster({&stream_, 1}, cluster));
    std::vector<T>& weights = distribution.memory().tokens;
    weights.resize(clusters_[cluster].size);
    WriteClusterTokens(stream_, cluster, weights.data());
    const uint32_t first = clusters_[cluster].first;
    for (auto next = std::lower_bound(excluded_.begin(), excluded_.end(), first);
         next != excluded_.end() && *next - first < weights.size(); ++next) {
      weights[*next - first] = -std::numeric_limits<T>::infinity();
    }
    WriteWeights(weights);
    double sum = 0;
    for (const T weight : weights) sum += static_cast<double>(weight);
    masses_[cluster] = MassBounds::Exactly(sum);
    is_exact_[cluster] = true;
    weighed_ = cluster;
    return Status();
  }

  // The cluster with the widest bounds, the first of several. REQUIRES: not all masses are exact.
  size_t LeastKnownCluster() const {
    const auto width = [&](size_t i) { return masses_[i].high - masses_[i].low; };
    size_t widest = clusters_.size();
    for (size_t i = 0; i < clusters_.size(); ++i) {
      if (is_exact_[i]) continue;
      if (widest == clusters_.size() || width(i) > width(widest)) widest = i;
    }
    return widest;
  }

  // Draws a token of the cluster. REQUIRES: the cluster was weighed last.
  uint32_t DrawTokenOf(size_t cluster) const {
    const std::vector<T>& weights = stream_.distribution->memory().tokens;
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

  // Computes the sums of the weights of the tokens so far, in their order.
  void AddUp(const std::vector<Candidate>& best) {
    std::vector<T> weights(best.size());
    std::transform(best.begin(), best.end(), weights.begin(),
                   [](const Candidate& token) { return static_cast<T>(token.log_probability); });
    WriteWeights(weights);
    cumulative_.resize(weights.size());
    double sum = 0;
    for (size_t i = 0; i < weights.size(); ++i) {
      cumulative_[i] = sum += static_cast<double>(weights[i]);
    }
  }

  // Draws one of the first `count` tokens. REQUIRES: AddUp(best) was called last.
  uint32_t DrawAmong(const std::vector<Candidate>& best, size_t count) const {
    const std::span<const double> sums = std::span(cumulative_).first(count);
    const double target = UniformDraw(seed_, stream_.frame.position, 0) * sums.back();
    // A uniform number is at most 1 - 2^-53, so its product with a sum is less than the sum.
    const auto drawn = std::upper_bound(sums.begin(), sums.end(), target);
    return best[static_cast<size_t>(drawn - sums.begin())].id;
  }

  QueriedStream<T>& stream_;
  const std::vector<ClusterPlan>& clusters_;
  const std::vector<uint32_t>& excluded_;
  const T reference_, temperature_;
  const uint64_t seed_;
  std::vector<MassBounds> masses_;
  std::vector<bool> is_exact_;
  size_t
      weighed_;  // the cluster whose weights are in memory.tokens; clusters_.size() if no cluster
  std::vector<double> cumulative_;
};

Status NoTokenIsLeft() {
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "session", "excluded words",
                         "at least one other word with a probability above 0", "none");
}

}  // namespace

template <class T>
Status DrawToken(std::span<QueriedStream<T>> streams, std::span<const uint64_t> seeds,
                 const DrawOptions& options, std::span<uint32_t> out) {
  std::vector<uint32_t> excluded = options.excluded;
  std::sort(excluded.begin(), excluded.end());
  excluded.erase(std::unique(excluded.begin(), excluded.end()), excluded.end());
  const uint32_t tokens = streams.front().distribution->plan().vocabulary_size;
  const bool among_best = options.top_k > 0 && options.top_k < tokens;
  const size_t wanted = among_best ? options.top_k : 1;
  const T temperature = static_cast<T>(
      std::min(options.temperature, static_cast<double>(std::numeric_limits<T>::max())));
  const bool is_greedy = std::isinf(T{1} / temperature);  // no other token has any weight
  std::array<std::vector<Candidate>, kLanesTogether> best;
  KINGLET_RETURN_IF_ERROR(
      FindTopK(streams, static_cast<uint32_t>(std::min<size_t>(tokens, wanted + excluded.size())),
               std::span(best).first(streams.size()),
               is_greedy || among_best ? kLogitsNowhere : kLogitsInBuffer));
  std::array<uint32_t, kLanesTogether> drawn{};
  for (size_t i = 0; i < streams.size(); ++i) {
    RemoveExcluded(excluded, best[i]);
    best[i].resize(std::min(best[i].size(), wanted));
    if (best[i].empty() || std::isinf(best[i].front().log_probability)) return NoTokenIsLeft();
    drawn[i] = best[i].front().id;
    if (is_greedy) continue;
    TokenSampler<T> sampler(streams[i], excluded, best[i].front().log_probability, seeds[i],
                            temperature);
    if (among_best) {
      drawn[i] = sampler.SampleAmong(best[i], options.top_p);
    } else {
      KINGLET_ASSIGN_OR_RETURN(
          drawn[i], options.top_p < 1 ? sampler.SampleNucleus(options.top_p) : sampler.Sample());
    }
  }
  std::copy_n(drawn.begin(), streams.size(), out.begin());
  return Status();
}

template Status DrawToken(std::span<QueriedStream<float>>, std::span<const uint64_t>,
                          const DrawOptions&, std::span<uint32_t>);
template Status DrawToken(std::span<QueriedStream<double>>, std::span<const uint64_t>,
                          const DrawOptions&, std::span<uint32_t>);

double UniformDraw(uint64_t seed, uint64_t position, uint64_t index) {
  const std::array<uint64_t, 3> key = {seed, position, index};
  const uint64_t bits = Digest64(std::as_bytes(std::span<const uint64_t>(key)));
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

MassBounds BoundMass(double log_probability, double tokens, double temperature, double reference) {
  const double exponent = 1 / temperature;
  const double log_mass = (log_probability - reference) * exponent;
  const double spread = (1 - exponent) * std::log(tokens);
  // A token's weight is exp of a float whose error is below 3e-7 of its terms; weights below
  // exp(-745) vanish whatever their error.
  const double slack = 1e-3 + 1e-6 * exponent * (1 + std::fabs(reference));
  // No token has more mass than the reference, which has 1: a cluster has at most one for each
  // token.
  const double low = std::exp(log_mass + std::min(spread, 0.0) - slack);
  const double high = std::exp(log_mass + std::max(spread, 0.0) + slack);
  const double largest = tokens * (1 + kSlack);
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

Nucleus FindNucleus(std::span<const double> cumulative, bool all,
                    std::span<const MassBounds> masses, double top_p) {
  MassBounds sum{0, 0};
  bool exact = true;
  for (const MassBounds& mass : masses) {
    sum.low += mass.low;
    sum.high += mass.high;
    exact = exact && mass.low == mass.high;
  }
  const auto tokens_for = [&](double mass) {
    const auto reached = std::lower_bound(cumulative.begin(), cumulative.end(), mass);
    return static_cast<size_t>(reached - cumulative.begin()) + 1;
  };
  const double slack = exact ? 0 : kSlack;
  const size_t least = tokens_for(top_p * sum.low * (1 - slack));
  const size_t most = tokens_for(top_p * sum.high * (1 + slack));
  if (least == most && least <= cumulative.size()) return {Nucleus::State::kKnown, least};
  if (least > cumulative.size() && !all) return {Nucleus::State::kNeedsTokens};
  if (!exact) return {Nucleus::State::kNeedsMasses};
  return {Nucleus::State::kKnown, cumulative.size()};  // reached but for rounding
}

}  // namespace kinglet

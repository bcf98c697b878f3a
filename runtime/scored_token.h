// A token of a text, and where it is in the distribution that predicted it.
#ifndef KINGLET_RUNTIME_SCORED_TOKEN_H_
#define KINGLET_RUNTIME_SCORED_TOKEN_H_

#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kinglet/status.h"
#include "runtime/queries/interval.h"
#include "runtime/session.h"

namespace kinglet {

// What was asked for: the token's rank and interval in the distribution, and its entropy in nats.
struct TokenPlace {
  std::optional<uint32_t> rank;
  std::optional<Interval> interval;
  std::optional<double> entropy;
  bool operator==(const TokenPlace&) const = default;
};

// Which members of a TokenPlace are asked for.
struct PlaceQuestions {
  bool rank = false, interval = false, entropy = false;

  bool any() const { return rank || interval || entropy; }
};

struct ScoredToken {
  double log_probability = 0;
  TokenPlace place;
};

// The entropy of a distribution in nats; an impossible token adds nothing.
inline double EntropyOf(std::span<const double> log_probabilities) {
  double entropy = 0;
  for (const double logarithm : log_probabilities) {
    if (std::isfinite(logarithm)) entropy -= std::exp(logarithm) * logarithm;
  }
  return entropy;
}

// The place of the token that follows in the lane. Errors: those of queries.
inline Result<TokenPlace> AskForPlace(const PlaceQuestions& questions, uint32_t id,
                                      Session& session, uint32_t lane = 0) {
  TokenPlace place;
  if (questions.rank) {
    KINGLET_ASSIGN_OR_RETURN(place.rank, session.Rank(id, lane));
  }
  if (questions.interval) {
    KINGLET_ASSIGN_OR_RETURN(place.interval, session.IntervalOf(id, lane));
  }
  if (questions.entropy) {
    std::vector<double> logarithms(session.model().vocabulary_size());
    KINGLET_RETURN_IF_ERROR(session.LogProbabilities(std::span<double>(logarithms), lane));
    place.entropy = EntropyOf(logarithms);
  }
  return place;
}

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_SCORED_TOKEN_H_

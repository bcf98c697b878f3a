// A token of a text, and where it is in the distribution that predicted it.
#ifndef KINGLET_RUNTIME_SCORED_TOKEN_H_
#define KINGLET_RUNTIME_SCORED_TOKEN_H_

#include <cstdint>
#include <optional>

#include "kinglet/status.h"
#include "runtime/queries/interval.h"
#include "runtime/session.h"

namespace kinglet {

// The token's rank and interval in the distribution, if they were asked for.
struct TokenPlace {
  std::optional<uint32_t> rank;
  std::optional<Interval> interval;
  bool operator==(const TokenPlace&) const = default;
};

// Which members of a TokenPlace are asked for.
struct PlaceQuestions {
  bool rank = false, interval = false;
};

struct ScoredToken {
  double log_probability = 0;
  TokenPlace place;
};

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
  return place;
}

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_SCORED_TOKEN_H_

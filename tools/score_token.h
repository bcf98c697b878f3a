// How the ways of scoring a text ask for a token.
#ifndef KINGLET_TOOLS_SCORE_TOKEN_H_
#define KINGLET_TOOLS_SCORE_TOKEN_H_

#include "runtime/scored_token.h"
#include "tools/replicas.h"

namespace kinglet {

// Replicas finds this overload by argument-dependent lookup.
inline bool SameBits(const ScoredToken& a, const ScoredToken& b) {
  return SameBits(a.log_probability, b.log_probability) && a.place == b.place;
}

// The token that follows.
inline Result<ScoredToken> ScoreToken(const PlaceQuestions& questions, uint32_t id,
                                      Session& session) {
  ScoredToken token;
  KINGLET_ASSIGN_OR_RETURN(token.log_probability, session.LogProbability(id));
  KINGLET_ASSIGN_OR_RETURN(token.place, AskForPlace(questions, id, session));
  return token;
}

}  // namespace kinglet

#endif  // KINGLET_TOOLS_SCORE_TOKEN_H_

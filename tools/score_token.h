// The queries about one token that all ways of scoring a text make.
#ifndef KINGLET_TOOLS_SCORE_TOKEN_H_
#define KINGLET_TOOLS_SCORE_TOKEN_H_

#include "runtime/scored_token.h"
#include "tools/replicas.h"

namespace kinglet {

// Replicas finds this overload by argument-dependent lookup.
inline bool SameBits(const TokenPlace& a, const TokenPlace& b) { return a == b; }

// Queries for the token `id` that follows, at `position` of the text.
inline Result<ScoredToken> ScoreToken(const PlaceQuestions& questions, uint32_t id,
                                      uint64_t position, Replicas& replicas) {
  ScoredToken token;
  KINGLET_ASSIGN_OR_RETURN(token.log_probability, replicas.LogProbability(id, position));
  if (!questions.any()) return token;
  KINGLET_ASSIGN_OR_RETURN(
      token.place, replicas.AskEach<TokenPlace>(position, [&](Session& session, uint32_t lane) {
        return AskForPlace(questions, id, session, lane);
      }));
  return token;
}

}  // namespace kinglet

#endif  // KINGLET_TOOLS_SCORE_TOKEN_H_

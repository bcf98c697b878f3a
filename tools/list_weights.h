// The weights of the parts of a hypothesis's score, and a search for the weights with the fewest
// word errors.
#ifndef KINGLET_TOOLS_LIST_WEIGHTS_H_
#define KINGLET_TOOLS_LIST_WEIGHTS_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace kinglet {

// The least number of words to insert, delete or replace to make one text of the other. Words are
// separated by white space.
uint64_t WordErrors(std::string_view hypothesis, std::string_view reference);
uint64_t CountWords(std::string_view text);

struct ScoreParts {
  double given = 0;    // the recogniser's score
  double logprob = 0;  // the model's
  double tokens = 0;
  uint64_t errors = 0;  // word errors, where the reference is known
};

struct ListWeights {
  double given = 1, model = 1, length = 0;
  bool operator==(const ListWeights&) const = default;
};

// A part of weight 0 does not count, even if it is infinite.
double WeightedScore(const ListWeights& weights, const ScoreParts& parts);

// The index of the best hypothesis; the first of equal ones. REQUIRES: not empty.
size_t BestHypothesis(const ListWeights& weights, const std::vector<ScoreParts>& list);

// Word errors of the best hypotheses.
uint64_t ErrorsOfBest(const ListWeights& weights,
                      const std::vector<std::vector<ScoreParts>>& lists);

// The weights with the fewest errors that the search finds. From several starts each weight in turn
// is moved to the value with the fewest errors, which is found exactly (Och 2003), until no move
// improves. The weights of given score and model are 0 or more. With `has_given` false all given
// scores count as 0. The given score has weight 1, or 0 where the model alone is best; then the
// model has weight 1. Equal lists give equal weights.
ListWeights TuneListWeights(const std::vector<std::vector<ScoreParts>>& lists, bool has_given);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_LIST_WEIGHTS_H_

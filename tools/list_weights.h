// The weights of the parts of a hypothesis's score, and a search for the weights with the fewest
// word errors.
#ifndef KINGLET_TOOLS_LIST_WEIGHTS_H_
#define KINGLET_TOOLS_LIST_WEIGHTS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace kinglet {

// Words are separated by white space.
std::vector<std::string_view> WordsOf(std::string_view text);
// The least number of words to insert, delete or replace to make one text of the other.
uint64_t WordErrors(std::string_view hypothesis, std::string_view reference);
uint64_t CountWords(std::string_view text);

struct ScoreParts {
  double given = 0;    // the recogniser's score
  double logprob = 0;  // the model's, with the n-gram models that are mixed with it
  double tokens = 0;
  uint64_t errors = 0;              // word errors, where the reference is known
  double unknown = 0;               // unknown words
  std::vector<double> ngrams = {};  // log-probabilities of n-gram models
  double context = 0;               // the bonus of phrases
  // Where n-gram models are mixed with the model: for each word, the model's log-probability, then
  // those of these models.
  std::vector<double> words = {};
};

struct ListWeights {
  double given = 1, model = 1, length = 0;
  double unknown = 0;               // of each unknown word
  std::vector<double> ngrams = {};  // one for each n-gram model
  double context = 0;
  std::vector<double> shares = {};  // of the n-gram models that are mixed
  bool operator==(const ListWeights&) const = default;
};

// A part of weight 0 does not count, even if it is infinite.
double WeightedScore(const ListWeights& weights, const ScoreParts& parts);

// Sets the log-probability of a text whose words are mixed by these shares; without shares nothing.
void MixWords(std::span<const double> shares, ScoreParts& parts);

// The index of the best hypothesis; the first of equal ones. REQUIRES: not empty.
size_t BestHypothesis(const ListWeights& weights, const std::vector<ScoreParts>& list);

// Word errors of the best hypotheses.
uint64_t ErrorsOfBest(const ListWeights& weights,
                      const std::vector<std::vector<ScoreParts>>& lists);

// Which weights a search changes besides those of model and length.
struct TunedWeights {
  bool has_given = false;  // otherwise all given scores count as 0
  bool unknown = false;
  size_t ngrams = 0;
  bool context = false;
  size_t mixed = 0;  // n-gram models whose shares are searched
};

// The weights with the fewest errors that the search finds. From several starts each weight in turn
// is moved to the value with the fewest errors, which is found exactly (Och 2003), until no move
// improves. The weights of given score and model are 0 or more. The given score has weight 1, or 0
// where the others alone are best; then the model has weight 1, if it has any. Shares are
// those under which the hypotheses with the fewest errors are most probable, and are found first.
// Equal lists give equal weights.
ListWeights TuneListWeights(const std::vector<std::vector<ScoreParts>>& lists,
                            const TunedWeights& tuned);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_LIST_WEIGHTS_H_

// How predictions look to people: one line per token with its probability, its rank, and what had
// been predicted for its place.
#ifndef KINGLET_TOOLS_PREDICTION_VIEW_H_
#define KINGLET_TOOLS_PREDICTION_VIEW_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "format/vocabulary.h"
#include "runtime/session.h"
#include "tools/console.h"

namespace kinglet {

// A token of the text and the probability it had.
struct ObservedToken {
  uint64_t position;
  uint32_t id;
  std::optional<double> log_probability;  // none for the first: nothing predicted it
};

// How good the predictions were so far.
struct PredictionTally {
  uint64_t tokens = 0;
  uint64_t predicted = 0;        // tokens that had a prediction
  uint64_t first = 0;            // that were its most probable word
  uint64_t among_top = 0;        // that were among its words
  double log_probability = 0.0;  // sum over the predicted
  double seconds = 0.0;
  size_t top = 0;  // most words of a prediction

  void Add(const ObservedToken& token, const std::vector<Candidate>& predicted_words);
};

// The index of `id` in the prediction, if it is there.
std::optional<size_t> RankOf(uint32_t id, const std::vector<Candidate>& prediction);

class PredictionView {
 public:
  // `console` and `vocabulary` (null: ids are shown) must outlive this.
  PredictionView(const Console& console, const Vocabulary* vocabulary)
      : console_(console), vocabulary_(vocabulary) {}

  std::string TokenLine(const ObservedToken& token, const std::vector<Candidate>& prediction) const;
  // A prediction whose token is not known yet.
  std::string PendingLine(const std::vector<Candidate>& prediction) const;
  std::string Summary(const PredictionTally& tally) const;

 private:
  std::string Word(uint32_t id) const;
  // The predicted words with bars, as many as the terminal's line has room for behind `used`
  // columns; the one with index `highlighted` stands out.
  std::string Words(const std::vector<Candidate>& prediction, std::optional<size_t> highlighted,
                    size_t used) const;
  std::string Bar(double probability) const;
  std::string Coloured(const char* sequence, const std::string& text) const;

  const Console& console_;
  const Vocabulary* vocabulary_;
};

}  // namespace kinglet

#endif  // KINGLET_TOOLS_PREDICTION_VIEW_H_

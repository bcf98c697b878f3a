// Predictions as text for people: one line per token with its probability, its rank, and the words
// that had been predicted for its position.
#ifndef KINGLET_TOOLS_PREDICTION_VIEW_H_
#define KINGLET_TOOLS_PREDICTION_VIEW_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/vocabulary.h"
#include "runtime/session.h"
#include "runtime/text_prefix.h"
#include "tools/console.h"

namespace kinglet {

// A token of the text and its probability.
struct ObservedToken {
  uint64_t position;
  uint32_t id;
  std::optional<double> log_probability;  // nullopt for the first token, which has no prediction
  std::string_view typed = {};            // how an unknown word was typed; may be empty
};

// Statistics of the predictions so far.
struct PredictionTally {
  uint64_t tokens = 0;
  uint64_t predicted = 0;        // tokens that had a prediction
  uint64_t first = 0;            // tokens that were the most probable word
  uint64_t among_top = 0;        // tokens among the predicted words
  double log_probability = 0.0;  // sum over the predicted
  double seconds = 0.0;
  size_t top = 0;  // largest number of words in a prediction

  void Add(const ObservedToken& token, const std::vector<Candidate>& predicted_words);
};

// The index of `id` in the prediction; nullopt if the prediction lacks it.
std::optional<size_t> RankOf(uint32_t id, const std::vector<Candidate>& prediction);

class PredictionView {
 public:
  // `console` and `vocabulary` must outlive the view. With a null vocabulary ids are shown.
  PredictionView(const Console& console, const Vocabulary* vocabulary)
      : console_(console), vocabulary_(vocabulary) {}

  std::string TokenLine(const ObservedToken& token, const std::vector<Candidate>& prediction) const;
  // A prediction whose token is not known yet.
  std::string PendingLine(const std::vector<Candidate>& prediction) const;
  // Like PendingLine, for words that several tokens spell.
  std::string CompletionsLine(const std::vector<TextCompletion>& words) const;
  std::string Summary(const PredictionTally& tally) const;

 private:
  std::string Word(uint32_t id) const;
  // The predicted words with bars, as many as fit on the terminal's line after `used` columns; the
  // word with index `highlighted` is emphasised.
  std::string Words(const std::vector<Candidate>& prediction, std::optional<size_t> highlighted,
                    size_t used) const;
  std::string Words(const std::vector<TextCompletion>& words, std::optional<size_t> highlighted,
                    size_t used) const;
  std::string Bar(double probability) const;
  std::string Coloured(const char* sequence, const std::string& text) const;

  const Console& console_;
  const Vocabulary* vocabulary_;
};

}  // namespace kinglet

#endif  // KINGLET_TOOLS_PREDICTION_VIEW_H_

// What a search adds up for each token: a network's log-probability, n-gram models and phrases.
#ifndef KINGLET_RUNTIME_TOKEN_SCORER_H_
#define KINGLET_RUNTIME_TOKEN_SCORER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "kinglet/status.h"
#include "runtime/model.h"
#include "runtime/ngrams/ngram_model.h"
#include "runtime/phrases.h"

namespace kinglet {

// By token, the number in the n-gram model of the token as the vocabulary spells it; <s> and </s>
// for the tokens that begin and end a text. Errors: KINGLET_UNSUPPORTED for a model of ids only.
Result<std::vector<uint32_t>> NgramWordsOfTokens(const Model& model, const NgramModel& ngrams);

// log(sum of shares[i] p(i)) of natural log-probabilities log p(i). REQUIRES: shares are 0 or more.
double LogOfMixture(std::span<const double> log_probabilities, std::span<const double> shares);

// The score of a token is
//   weight x log(mixture of the network and the n-gram models that are mixed, by their shares)
//   + weights x log p of the n-gram models that are added
//   + the weight of unknown words, for the token of unknown words
//   + the growth of the phrases' bonus (phrases.h).
// The network has the share that the others leave. A model of bigrams with a negative weight is
// LODR, a low-order density ratio. Words of the n-gram models are the tokens as the vocabulary
// spells them, so a model of pieces needs n-grams of pieces; they are <s> and </s> for the tokens
// that begin and end a text, before and after which n-grams begin again and no phrase continues. To
// n-grams of negative weight and without <unk>, a token that they lack has log-probability 0.
//
// A value. Copies share the n-gram models. Threads may share one that does not change.
class TokenScorer {
 public:
  enum class Use : uint8_t { kAdded, kMixed };

  // What n-grams and phrases know of the tokens before.
  struct State {
    std::vector<NgramState> ngrams;
    Phrases::State phrases = Phrases::kNone;
  };

  // KINGLET_INVALID_ARGUMENT for weights that are not finite. `model` is not kept.
  static Result<TokenScorer> Create(const Model& model, double weight, double unknown_weight);
  // KINGLET_INVALID_ARGUMENT: a weight that is not finite, shares below 0 or of more than 1 in all.
  // KINGLET_UNSUPPORTED for a model of ids only. REQUIRES: `model` is that of Create.
  Status AddNgrams(const Model& model, std::shared_ptr<const NgramModel> ngrams, Use use,
                   double weight);
  // KINGLET_INVALID_ARGUMENT for an empty phrase or a bonus that is not finite,
  // KINGLET_ID_OUT_OF_RANGE.
  Status AddPhrase(std::span<const uint32_t> ids, double bonus);

  // Prepares phrases for the functions below, which need it after the last AddPhrase.
  void Link() { phrases_.Link(); }

  size_t state_bytes() const { return sizeof(State) + parts_.size() * sizeof(NgramState); }

  // Before the first token.
  State Begin() const;
  State After(const State& before, uint32_t id) const;
  // The score of a token to which the network gives this log-probability.
  double Score(const State& before, uint32_t id, double log_probability) const;
  // row[id] = Score(before, id, row[id]) of every token, to the last bit.
  void ScoreAll(const State& before, std::span<double> row) const;

 private:
  struct Part {
    std::shared_ptr<const NgramModel> ngrams;
    std::shared_ptr<const std::vector<uint32_t>> words;  // by token
    Use use;
    double weight;
  };
  explicit TokenScorer(const Model& model);
  static uint32_t WordOf(const Part& part, uint32_t id);
  static double LogOf(const Part& part, uint32_t word, double log10);
  // `logs`: the network's log-probability, then those of the n-gram models.
  double Sum(uint32_t id, std::span<const double> logs, double bonus) const;
  bool Ends(uint32_t id) const { return id == begin_ || id == end_; }

  uint32_t vocabulary_size_;
  std::optional<uint32_t> unknown_, begin_, end_;
  double weight_ = 1, unknown_weight_ = 0;
  std::vector<Part> parts_;
  std::vector<double> shares_ = {1};  // of the network, then of each part; 0 if it is added
  Phrases phrases_;
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_TOKEN_SCORER_H_

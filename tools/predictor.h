// Feeds a text to a model and prints, after each token, the most probable next ones.
#ifndef KINGLET_TOOLS_PREDICTOR_H_
#define KINGLET_TOOLS_PREDICTOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "converters/texts/text_reader.h"
#include "kinglet/status.h"
#include "runtime/model.h"
#include "runtime/queries/next_characters.h"
#include "runtime/queries/token_set.h"
#include "runtime/session.h"
#include "runtime/spellings.h"
#include "runtime/text_prefix.h"
#include "tools/console.h"
#include "tools/prediction_view.h"

namespace kinglet {

struct PredictionOptions {
  uint32_t top = 5;             // next tokens to print
  std::optional<double> top_p;  // at most as many as have this much probability together
  bool json = false;
  std::optional<uint32_t> excluded;  // a word that must not be among them
  std::optional<TokenSet> words;     // only these words, without `excluded`
  // Print the probability of all words with this beginning, which `words` are, and of each
  // character that can follow. With `spellings` words are sequences of tokens
  // (runtime/text_prefix.h).
  std::optional<std::string> prefix;
  std::shared_ptr<const Spellings> spellings = nullptr;
  bool next_characters = false;
};

// The answer about a token of the text and the next one.
struct PredictionAnswer {
  std::optional<double> log_probability;  // of the token itself; nullopt for the first
  std::vector<Candidate> next;
  // Replaces `next` with PredictionOptions::spellings; without the space before the words.
  std::vector<TextCompletion> completions;
  uint64_t steps = 0;  // steps that the completions took
  double prefix_probability = 0;
  std::vector<NextCharacter> characters;  // that can follow the prefix
};

class Predictor {
 public:
  // All references must outlive the predictor.
  Predictor(const PredictionOptions& options, const Model& model, Session& session,
            Console& console);

  // Feeds the model's start token, if it has one. JSON output omits its prediction: it has one line
  // for each token of the text.
  Status Start();
  // Feeds tokens and writes their answers to the descriptor before it returns. KINGLET_CANCELLED
  // after Ctrl-C.
  Status Feed(const TokenSequence& sequence);
  // Shows the prediction for the token that has not been read yet.
  Status ShowPending();
  void ShowSummary() const;

 private:
  // `first`: where the chunk begins in its sequence.
  Status FeedChunk(std::span<const uint32_t> ids, const TypedWords& typed, size_t first);
  Result<std::vector<PredictionAnswer>> AnswerTokens(std::span<const uint32_t> ids,
                                                     const TypedWords& typed, size_t first) const;
  Result<std::vector<Candidate>> AskForWords() const;
  // `is_last`: of the tokens that are shown together.
  Result<PredictionAnswer> AskForNext(bool is_last) const;
  Status AskForCompletions(PredictionAnswer& answer) const;
  void WriteJson(uint64_t position, const PredictionAnswer& answer);

  const PredictionOptions& options_;
  const Model& model_;
  Session& session_;
  Console& console_;
  const PredictionView view_;
  const size_t chunk_;                       // tokens that are fed before their answers are shown
  uint64_t position_ = 0;                    // tokens fed
  std::vector<Candidate> pending_;           // for the next token
  std::vector<TextCompletion> completions_;  // for the next word, with spellings
  PredictionTally tally_;
};

}  // namespace kinglet

#endif  // KINGLET_TOOLS_PREDICTOR_H_

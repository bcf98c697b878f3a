// Finds the words that a person means who types on a keyboard.
#ifndef KINGLET_RUNTIME_TYPING_DECODER_H_
#define KINGLET_RUNTIME_TYPING_DECODER_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "kinglet/status.h"
#include "runtime/typing/letters.h"
#include "runtime/typing/piece_search.h"
#include "runtime/typing/touches.h"
#include "runtime/typing/typing_vocabulary.h"
#include "runtime/typing/user_overlay.h"
#include "runtime/typing/word_search.h"

namespace kinglet::typing {

// What predicts the next word: a lane of a session, or another model of the same vocabulary.
class WordPredictor {
 public:
  virtual ~WordPredictor() = default;
  // A number that no other context has, of any predictor.
  virtual uint64_t version() const = 0;
  // out[id] becomes the log-probability that token `id` comes next.
  virtual Status Next(std::span<float> out) = 0;
  // Like Next, after one or more other tokens.
  virtual Status After(std::span<const uint32_t> ids, std::span<float> out) = 0;
  // The error of a call that was cancelled, once.
  virtual Status TakeCancellation() { return {}; }
};

// What the probability of a word is made of: (1 - user - spelling) of the network's, `user` of the
// person's words and `spelling` of the letters of words that the vocabulary lacks.
struct TypingWeights {
  double user = 0.1, spelling = 1e-5;
};

// The probabilities of one word that are mixed. Each adds up to 1 over all words; the user's is the
// network's as far as the list of the person's words is not trusted.
struct TypingParts {
  double network, user, spelling;
  double Mixed(const TypingWeights& weights) const {
    return (1 - weights.user - weights.spelling) * network + weights.user * user +
           weights.spelling * spelling;
  }
};

struct TypingQuestion {
  Touches touches;
  std::string before;  // the word before, of any kind; empty for none
  ErrorCosts errors;
  Capitals capitals = Capitals::kAsWritten;
  bool is_finished = false;  // the word ends here; otherwise letters may follow
  size_t count = 3;          // the most candidates
  double margin = 8;         // candidates whose scores are this much lower than the best are none
  // After this time the search ends with what it has.
  std::optional<std::chrono::steady_clock::time_point> deadline;
};

struct TypingCandidate {
  enum class Kind : uint8_t {
    kWord,      // one token of the vocabulary
    kTwoWords,  // two tokens, with a space or joined
    kTyped,     // the likeliest letters as they were typed
    kUserWord,  // a word of the person that the vocabulary lacks
  };
  std::string text;
  double log_probability;  // of the text after the context
  double cost;             // of the typing errors
  Kind kind;
  uint32_t ids[2];  // the tokens; the unknown one for kTyped and kUserWord

  double score() const { return log_probability - cost; }
};

struct TypingAnswer {
  std::vector<TypingCandidate> candidates;  // best first
  bool is_complete = true;                  // false if the deadline ended the search
};

// Answers questions of one keyboard. Used by one thread at a time.
class TypingDecoder {
 public:
  // How many first words are tried for each place of a missing space.
  static constexpr size_t kFirstWords = 8;

  // How much likelier a second word may be after the first one than it is before it.
  static constexpr double kEstimate = 4;
  // Two words are tried where they may be at most this much worse than the best candidate.
  static constexpr double kNear = 3;
  // First words are found down to a score this much lower than needed, for the next touches.
  static constexpr double kSpare = 1;

  explicit TypingDecoder(std::shared_ptr<const TypingVocabulary> words);

  const TypingVocabulary& words() const { return *words_; }
  // From now on these words are never candidates, in any spelling that differs in capitals,
  // accents, apostrophes and hyphens only.
  void SetBlocked(std::span<const std::string> words);
  // From now on only these words, and sequences of two of them, are candidates; without words all
  // are.
  void SetAllowed(std::span<const std::string> words);

  // The person's own words.
  UserOverlay& user() { return user_; }
  // REQUIRES: weights of at least 0 whose sum is below 1.
  void SetWeights(const TypingWeights& weights);

  // The candidates of the highest score, which is the log-probability minus the cost. Candidates
  // are: every word of the vocabulary and of the person; the typed letters, where each touch has a
  // character and they are no word of the vocabulary; and two words of the vocabulary without their
  // space, of which the first is one of the kFirstWords best words that end at a touch. Of
  // candidates that read alike the best counts. Equal scores are in the order of the words'
  // letters. Of a model of pieces: the words that a PieceSearch finds, the typed letters, and the
  // person's words; no two words. Errors: those of the predictor.
  Result<TypingAnswer> Find(WordPredictor& predictor, const TypingQuestion& question);
  // Computes what Find needs about the context, so that the next call takes less time.
  Status Prepare(WordPredictor& predictor);
  // The parts of the probability of a word that is no two words.
  Result<TypingParts> PartsOf(WordPredictor& predictor, std::string_view before,
                              const std::string& word);

 private:
  class Search;
  struct After {
    uint32_t id;
    EntryScores scores;
  };
  // How much the network and the person's words count, and the probabilities of these.
  struct Mix {
    double network, user;
    std::vector<double> p;  // by number
  };
  Mix MixAfter(std::string_view before) const;
  // What is mixed of the probability of each entry. by_id_ has the network's.
  void Score(const Mix& mix, EntryScores& out) const;
  // Asks the predictor about the next word.
  Status Predict(WordPredictor& predictor);
  // Computes scores for the word that follows `before`.
  Status MixNext(WordPredictor& predictor, const std::string& before);
  bool IsAllowed(const Letters& plain) const;
  void UpdateAllowed();
  // Forgets first words that the question may not have.
  void KeepFirstWords(const TypingQuestion& question);
  Result<const EntryScores*> ScoresAfter(WordPredictor& predictor, uint32_t id);

  std::shared_ptr<const TypingVocabulary> words_;
  std::set<Letters> blocked_, allowed_;  // plain letters
  std::vector<bool> is_left_out_;        // by entry; empty if all are candidates
  UserOverlay user_;
  TypingWeights weights_;
  WordSearch search_;
  std::optional<PieceSearch> piece_search_;  // of a model of pieces
  TouchCosts costs_;
  // What the predictor answered last, and the context after which that comes next; 0 for none.
  std::vector<float> by_id_;
  uint64_t version_ = 0;
  // The context, the word before and the version of the person's words of the scores; 0 for no
  // scores.
  uint64_t mixed_context_ = 0, mixed_version_ = 0;
  std::string mixed_before_;
  EntryScores scores_;
  EntryScores own_scores_;  // of user_.own()
  TouchCosts own_costs_;
  EntryScores joining_;  // of the words that join: 0, the most that any can have
  TouchCosts joining_costs_;
  double log_unknown_ = 0;
  TypingQuestion asked_;
  // All words of at least `lowest` that are first words.
  struct KeptWords {
    double lowest = kNever;
    std::vector<FoundWord> words;
  };
  std::vector<KeptWords> first_words_;  // by touches, of the last question
  std::vector<After> after_;            // by first word
};

}  // namespace kinglet::typing

#endif  // KINGLET_RUNTIME_TYPING_DECODER_H_

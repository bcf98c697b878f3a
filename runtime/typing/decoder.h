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
#include "runtime/typing/touches.h"
#include "runtime/typing/typing_vocabulary.h"
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
  // Like Next, after one more token.
  virtual Status After(uint32_t id, std::span<float> out) = 0;
  // The error of a call that was cancelled, once.
  virtual Status TakeCancellation() { return {}; }
};

struct TypingQuestion {
  Touches touches;
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
  };
  std::string text;
  double log_probability;  // of the text after the context
  double cost;             // of the typing errors
  Kind kind;
  uint32_t ids[2];  // the tokens; the unknown one for kTyped

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

  explicit TypingDecoder(std::shared_ptr<const TypingVocabulary> words);

  const TypingVocabulary& words() const { return *words_; }
  // From now on these words are never candidates, in any spelling that differs in capitals,
  // accents, apostrophes and hyphens only.
  void SetBlocked(std::span<const std::string> words);
  // From now on only these words, and sequences of two of them, are candidates; without words all
  // are.
  void SetAllowed(std::span<const std::string> words);

  // The candidates of the highest score, which is the log-probability minus the cost. Candidates
  // are: every word; the typed letters, where each touch has a character and they are no word; and
  // two words without their space, of which the first is one of the kFirstWords best words that end
  // at a touch. Of candidates that read alike the best counts. Equal scores are in the order of the
  // words' letters. Errors: those of the predictor.
  Result<TypingAnswer> Find(WordPredictor& predictor, const TypingQuestion& question);
  // Computes what Find needs about the context, so that the next call takes less time.
  Status Prepare(WordPredictor& predictor);

 private:
  class Search;
  struct After {
    uint32_t id;
    EntryScores scores;
  };
  bool IsAllowed(const Letters& plain) const;
  void UpdateAllowed();
  // Forgets first words that the question may not have.
  void KeepFirstWords(const TypingQuestion& question);
  Result<const EntryScores*> ScoresAfter(WordPredictor& predictor, uint32_t id);

  std::shared_ptr<const TypingVocabulary> words_;
  std::set<Letters> blocked_, allowed_;  // plain letters
  std::vector<bool> is_left_out_;        // by entry; empty if all are candidates
  WordSearch search_;
  TouchCosts costs_;
  // The context that was asked about last; 0 for none.
  uint64_t version_ = 0;
  std::vector<float> by_id_;
  EntryScores scores_;
  EntryScores joining_;  // 0 for words that join; empty if there are none
  double log_unknown_ = 0;
  TypingQuestion asked_;
  std::vector<std::vector<FoundWord>> first_words_;  // by touches, of the last question
  std::vector<After> after_;                         // by first word, the one used last at the end
};

}  // namespace kinglet::typing

#endif  // KINGLET_RUNTIME_TYPING_DECODER_H_

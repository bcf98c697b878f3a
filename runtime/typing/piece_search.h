// Finds the words of pieces that explain touches: a beam search.
#ifndef KINGLET_RUNTIME_TYPING_PIECE_SEARCH_H_
#define KINGLET_RUNTIME_TYPING_PIECE_SEARCH_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kinglet/status.h"
#include "runtime/typing/piece_vocabulary.h"
#include "runtime/typing/touches.h"
#include "runtime/typing/word_search.h"

namespace kinglet::typing {

// What predicts pieces: out[id] becomes the log-probability of piece `id` after these.
using PredictPieces = std::function<Status(std::span<const uint32_t> after, std::span<float> out)>;

// A word of pieces, the log-probability of its pieces and its end, and the least cost of an
// alignment of its letters with the touches (WordSearch).
struct FoundPieces {
  std::string text;
  double log_probability, cost;
  double score() const { return log_probability - cost; }
};

class PieceSearch {
 public:
  // Beginnings of words that are kept after each piece, and the most pieces of a word.
  static constexpr size_t kBeam = 8, kMostPieces = 16;

  explicit PieceSearch(std::shared_ptr<const PieceVocabulary> pieces)
      : pieces_(std::move(pieces)), probabilities_(pieces_->size()) {}

  // Offers words that explain all touches, in no order; of a word that several sequences of pieces
  // spell each may be offered. Beginnings whose best possible score is below `least()` are not
  // continued. After each piece the kBeam beginnings with the best possible scores are kept, so a
  // word may be missing. Errors: those of `predict`.
  Status Find(const Touches& touches, const ErrorCosts& errors, bool is_finished,
              const PredictPieces& predict, const std::function<double()>& least,
              const std::function<void(const FoundPieces&)>& offer, const StopSearch& stop,
              bool& was_stopped);

  // The log-probability of a word of these pieces and its end; minus infinity if they are no
  // word's. Errors: those of `predict`.
  Result<double> LogProbability(std::span<const uint32_t> ids, const PredictPieces& predict);

 private:
  // The probabilities of a tree's pieces.
  void Score(const WordTrie& trie, EntryScores& scores) const;
  // The log-probability that a word ends after the piece; probabilities_ are those after it.
  double LogEnd(uint32_t last);
  // The costs of aligning the first touches with the letters so far, by touches aligned.
  using Row = std::vector<double>;
  struct Beginning {
    std::vector<uint32_t> ids;
    std::string text;
    double log_probability = 0;
    double best = 0;                  // a bound of the scores of words that begin so
    Row row, before;                  // after the last letter, and after the one before it
    const double* by_last = nullptr;  // the costs of the last letter, by touch; null at the start
    double reached = kNever;          // the least cost of all touches with a beginning
  };
  class Expansion;
  static double KeepBest(std::vector<Beginning>& continued);

  std::shared_ptr<const PieceVocabulary> pieces_;
  std::vector<float> probabilities_;
  EntryScores beginning_scores_, continuing_scores_;
  TouchCosts beginning_costs_, continuing_costs_;
};

}  // namespace kinglet::typing

#endif  // KINGLET_RUNTIME_TYPING_PIECE_SEARCH_H_

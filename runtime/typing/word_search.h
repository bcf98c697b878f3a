// Finds the words that explain touches best: an exact best-first search over a tree of letters.
#ifndef KINGLET_RUNTIME_TYPING_WORD_SEARCH_H_
#define KINGLET_RUNTIME_TYPING_WORD_SEARCH_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "kinglet/status.h"
#include "runtime/typing/touches.h"
#include "runtime/typing/word_trie.h"

namespace kinglet::typing {

inline constexpr double kNever = std::numeric_limits<double>::infinity();

// The log-probability of each entry of a trie, minus infinity for one that is no candidate, and the
// largest of any range.
class EntryScores {
 public:
  // For `entries` scores.
  explicit EntryScores(size_t entries = 0) : scores_(entries) {}
  std::span<float> scores() { return scores_; }
  float operator[](size_t entry) const { return scores_[entry]; }
  // Call after changes of scores().
  void Finish();
  // The largest of scores [first, last).
  float Largest(size_t first, size_t last) const;

 private:
  static constexpr size_t kBlock = 16;
  std::vector<float> scores_;
  std::vector<std::vector<float>> largest_;  // of blocks of kBlock, kBlock^2, ..
};

// The cost of explaining each touch by each letter of a trie.
class TouchCosts {
 public:
  // REQUIRES: costs and errors are not negative and not NaN.
  void Set(const WordTrie& trie, const Touches& touches, const ErrorCosts& errors);

  // Takes the bounds of another trie's costs for the same touches. REQUIRES: the other trie has all
  // letters of this one.
  void TakeBounds(const TouchCosts& other);

  size_t touches() const { return rest_.size() - 1; }
  const ErrorCosts& errors() const { return errors_; }
  const double* of(uint16_t label) const { return costs_.data() + label * touches(); }  // by touch
  double deletion(uint16_t label) const { return deletions_[label]; }
  // A bound of the cost of one touch, and of all touches from `first` up to `last`.
  double least(size_t touch) const { return least_[touch]; }
  double Rest(size_t first, size_t last) const { return rest_[first] - rest_[last]; }
  // A bound of what a touch that no letter explains costs beyond least().
  double more_to_insert() const { return more_to_insert_; }
  // Whether no word at all explains the touches.
  bool is_impossible() const { return is_impossible_; }

 private:
  ErrorCosts errors_;
  std::vector<double> costs_, deletions_, least_;
  std::vector<double> rest_ = {0};  // [touches + 1], of the touches from each one on
  double more_to_insert_ = 0;
  bool is_impossible_ = false;
};

// An entry of the trie, and the score and cost of the best alignment of its letters with touches:
// score = log-probability - cost.
struct FoundWord {
  double score, cost;
  uint32_t entry;
};
// Better first; equal ones by lower entry.
inline bool IsBetter(const FoundWord& a, const FoundWord& b) {
  return a.score != b.score ? a.score > b.score : a.entry < b.entry;
}

// What to look for.
struct WordQuestion {
  size_t first, last;       // the touches
  bool is_finished;         // the word ends with the touches; otherwise letters may follow them
  size_t count;             // the most words to find
  double lowest = -kNever;  // words with lower scores are not wanted,
  double margin = kNever;   // and neither are those that are this much worse than the best one
  // Whether two entries of one node read alike, so that only the more probable one counts. Null if
  // no two do.
  std::function<bool(uint32_t, uint32_t)> alike = nullptr;
};

// Called between parts of a search; true ends it.
using StopSearch = std::function<bool()>;

class WordSearch {
 public:
  // The best words, best first. With touches x and letters w the cost of an alignment is the sum of
  // the costs of its operations: a touch by a letter, an insertion, a deletion, and a transposition
  // of two neighbours (not combined with others there). Exact, unless `stop` ended the search:
  // then `was_stopped` is true, and the words are the best that were found.
  //
  // A node's bound is the largest log-probability of its subtree minus a bound of every alignment's
  // cost: the least in the row of costs, each with what the touches and letters to come must cost.
  // Costs in a row that lead to no word of the answer are omitted.
  std::vector<FoundWord> Find(const WordTrie& trie, const EntryScores& scores,
                              const TouchCosts& costs, const WordQuestion& question,
                              const StopSearch& stop, bool& was_stopped);

 private:
  // The costs of aligning `first` up to `last` touches with a node's letters, from rows_[at] on.
  struct Row {
    uint32_t at = 0;
    uint16_t first = 1, last = 0;  // of an empty row
  };
  struct Open {
    double bound;
    double cost;     // a bound of the cost of every word in the subtree
    double largest;  // log-probability of the subtree
    // A bound of what touches and letters so far cost, without more letters or touches than match.
    double through;
    double
        reached;  // the least cost of an alignment of all touches with a beginning of the letters
    uint32_t node;
    Row row, before;  // of the node, and of the node above
  };
  // Copies a row to costs[touches], and infinity to what is not in the row.
  void Unpack(const Row& row, std::span<double> costs) const;
  std::vector<Open> queue_;  // a heap, the largest bound first
  std::vector<double> rows_;
};

}  // namespace kinglet::typing

#endif  // KINGLET_RUNTIME_TYPING_WORD_SEARCH_H_

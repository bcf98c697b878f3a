#include "runtime/typing/piece_search.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace kinglet::typing {

// Keeps the best ones, best first, and returns the bound of the last.
double PieceSearch::KeepBest(std::vector<Beginning>& continued) {
  const size_t kept = std::min(kBeam, continued.size());
  std::partial_sort(continued.begin(), continued.begin() + static_cast<std::ptrdiff_t>(kept),
                    continued.end(), [](const Beginning& a, const Beginning& b) {
                      return a.best != b.best ? a.best > b.best : a.ids < b.ids;
                    });
  continued.resize(kept);
  return kept < kBeam ? -kNever : continued.back().best;
}

// Continues one beginning with each piece of a tree.
class PieceSearch::Expansion {
 public:
  Expansion(const PieceVocabulary& pieces, const WordTrie& trie, const EntryScores& scores,
            const TouchCosts& costs, bool is_finished, double least,
            std::vector<Beginning>& continued)
      : pieces_(pieces),
        trie_(trie),
        scores_(scores),
        costs_(costs),
        is_finished_(is_finished),
        least_(least),
        continued_(continued) {}

  void Run(const Beginning& from) {
    from_ = &from;
    Visit(0, from.row, from.before, from.by_last, from.reached);
  }

 private:
  size_t n() const { return costs_.touches(); }

  // Continues with the letters of the node's children.
  void Visit(uint32_t above, const Row& row, const Row& before, const double* by_last,
             double reached) {
    for (uint32_t node = above + 1; node < trie_.End(above); node = trie_.End(node)) {
      const double largest =
          scores_.Largest(trie_.FirstEntry(node), trie_.FirstEntry(trie_.End(node)));
      if (from_->log_probability + largest < least_) continue;
      const double* const by = costs_.of(trie_.label(node));
      const Row next = NextRow(row, before, by_last, by, costs_.deletion(trie_.label(node)));
      const double all = is_finished_ ? kNever : std::min(reached, next[n()]);
      const double cost = std::min(all, Least(next, row, by));
      if (from_->log_probability + largest - cost < least_) continue;
      const uint32_t last_entry = trie_.FirstEntry(node + 1);
      for (uint32_t entry = trie_.FirstEntry(node); entry < last_entry; ++entry) {
        const double log_probability = from_->log_probability + static_cast<double>(scores_[entry]);
        if (log_probability - cost < least_ || log_probability == -kNever) continue;
        const uint32_t id = trie_.value(entry);
        Beginning made = {from_->ids,
                          from_->text + pieces_.text(id),
                          log_probability,
                          log_probability - cost,
                          next,
                          row,
                          by,
                          all};
        made.ids.push_back(id);
        continued_.push_back(std::move(made));
        if (continued_.size() == 8 * kBeam) least_ = std::max(least_, KeepBest(continued_));
      }
      Visit(node, next, row, by, all);
    }
  }

  Row NextRow(const Row& above, const Row& before, const double* by_last, const double* by,
              double deletion) const {
    const ErrorCosts& errors = costs_.errors();
    Row row(n() + 1);
    for (size_t i = 0; i <= n(); ++i) {
      row[i] = above[i] + deletion;
      if (i > 0)
        row[i] = std::min({row[i], row[i - 1] + errors.insertion, above[i - 1] + by[i - 1]});
      if (i > 1 && by_last != nullptr) {
        row[i] =
            std::min(row[i], before[i - 2] + errors.transposition + by[i - 2] + by_last[i - 1]);
      }
    }
    return row;
  }

  // A bound of what the touches cost in all words that continue so.
  double Least(const Row& row, const Row& above, const double* by) const {
    double least = kNever;
    for (size_t i = 0; i <= n(); ++i) {
      least = std::min(least, row[i] + costs_.Rest(i, n()));
      if (i < 2) continue;
      least = std::min(least, above[i - 2] + costs_.errors().transposition + by[i - 1] +
                                  costs_.least(i - 2) + costs_.Rest(i, n()));
    }
    return least;
  }

  const PieceVocabulary& pieces_;
  const WordTrie& trie_;
  const EntryScores& scores_;
  const TouchCosts& costs_;
  const bool is_finished_;
  double least_;
  std::vector<Beginning>& continued_;
  const Beginning* from_ = nullptr;
};

void PieceSearch::Score(const WordTrie& trie, EntryScores& scores) const {
  scores = EntryScores(trie.entries());
  for (uint32_t entry = 0; entry < trie.entries(); ++entry) {
    scores.scores()[entry] = probabilities_[trie.value(entry)];
  }
  scores.Finish();
}

double PieceSearch::LogEnd(uint32_t last) {
  if (!pieces_->MayContinue(last)) return 0;
  Score(pieces_->continuing(), continuing_scores_);
  double more = 0;
  for (const float p : continuing_scores_.scores()) more += std::exp(static_cast<double>(p));
  return std::log1p(-std::min(more, 1 - 1e-12));
}

Result<double> PieceSearch::LogProbability(std::span<const uint32_t> ids,
                                           const PredictPieces& predict) {
  if (ids.empty()) return -kNever;
  double sum = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (pieces_->text(ids[i]).empty()) return -kNever;
    KINGLET_RETURN_IF_ERROR(predict(ids.first(i), probabilities_));
    sum += static_cast<double>(probabilities_[ids[i]]);
  }
  KINGLET_RETURN_IF_ERROR(predict(ids, probabilities_));
  return sum + LogEnd(ids.back());
}

Status PieceSearch::Find(const Touches& touches, const ErrorCosts& errors, bool is_finished,
                         const PredictPieces& predict, const std::function<double()>& least,
                         const std::function<void(const FoundPieces&)>& offer,
                         const StopSearch& stop, bool& was_stopped) {
  const WordTrie &beginning = pieces_->beginning(), &continuing = pieces_->continuing();
  beginning_costs_.Set(beginning, touches, errors);
  continuing_costs_.Set(continuing, touches, errors);
  if (beginning_costs_.is_impossible() || continuing_costs_.is_impossible()) return {};
  Beginning start;
  for (size_t i = 0; i <= touches.count(); ++i) {
    start.row.push_back(i == 0 ? 0 : start.row.back() + errors.insertion);
  }
  start.before = start.row;
  start.reached = is_finished ? kNever : start.row.back();
  std::vector<Beginning> continued;
  KINGLET_RETURN_IF_ERROR(predict({}, probabilities_));
  Score(beginning, beginning_scores_);
  Expansion(*pieces_, beginning, beginning_scores_, beginning_costs_, is_finished, least(),
            continued)
      .Run(start);
  for (size_t pieces = 1; pieces <= kMostPieces && !continued.empty(); ++pieces) {
    KeepBest(continued);
    const std::vector<Beginning> beam = std::exchange(continued, {});
    for (const Beginning& one : beam) {
      if (one.best < least()) break;
      if (stop()) {
        was_stopped = true;
        return {};
      }
      KINGLET_RETURN_IF_ERROR(predict(one.ids, probabilities_));
      const double end = LogEnd(one.ids.back());
      const double cost = is_finished ? one.row.back() : one.reached;
      if (cost < kNever) offer({one.text, one.log_probability + end, cost});
      if (!pieces_->MayContinue(one.ids.back())) continue;
      Expansion(*pieces_, continuing, continuing_scores_, continuing_costs_, is_finished, least(),
                continued)
          .Run(one);
    }
  }
  return {};
}

}  // namespace kinglet::typing

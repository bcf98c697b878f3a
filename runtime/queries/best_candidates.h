// Keeps the k most probable of the tokens that it is offered.
#ifndef KINGLET_RUNTIME_QUERIES_BEST_CANDIDATES_H_
#define KINGLET_RUNTIME_QUERIES_BEST_CANDIDATES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "kinglet/status.h"

namespace kinglet {

// A token and its natural log-probability (a float widened exactly, except on ref64).
struct Candidate {
  uint32_t id;
  double log_probability;
};

// The order of answers: more probable first; equal ones by lower id.
inline bool MoreProbable(const Candidate& a, const Candidate& b) {
  return a.log_probability != b.log_probability ? a.log_probability > b.log_probability
                                                : a.id < b.id;
}

// Sorts tokens into the order of answers. Calls check() between parts that take some milliseconds,
// and returns its Status if that is not OK; the tokens are then in any order.
template <class Check>
Status SortByProbability(std::span<Candidate> tokens, const Check& check) {
  constexpr size_t kPart = size_t{1} << 16;
  const auto at = [&](size_t i) {
    return tokens.begin() + static_cast<std::ptrdiff_t>(std::min(i, tokens.size()));
  };
  for (size_t first = 0; first < tokens.size(); first += kPart) {
    if (first > 0) KINGLET_RETURN_IF_ERROR(check());
    std::sort(at(first), at(first + kPart), MoreProbable);
  }
  for (size_t sorted = kPart; sorted < tokens.size(); sorted *= 2) {
    for (size_t first = 0; first + sorted < tokens.size(); first += 2 * sorted) {
      KINGLET_RETURN_IF_ERROR(check());
      std::inplace_merge(at(first), at(first + sorted), at(first + 2 * sorted), MoreProbable);
    }
  }
  return Status();
}

// The k best candidates seen so far, worst at the front of a heap.
class BestCandidates {
 public:
  explicit BestCandidates(size_t k = 0) : k_(k) {}
  // Returns whether the candidate is now one of the k best.
  bool Offer(const Candidate& candidate) {
    if (heap_.size() < k_) {
      heap_.push_back(candidate);
      std::push_heap(heap_.begin(), heap_.end(), MoreProbable);
      return true;
    }
    if (k_ == 0 || !MoreProbable(candidate, heap_.front())) return false;
    std::pop_heap(heap_.begin(), heap_.end(), MoreProbable);
    heap_.back() = candidate;
    std::push_heap(heap_.begin(), heap_.end(), MoreProbable);
    return true;
  }
  // Whether a token of log-probability `bound` or less could still be among the best.
  bool CouldTake(double bound) const { return !(bound < Threshold()); }
  // The log-probability of the k-th best candidate, below which no token can be among the best;
  // minus infinity while there are fewer than k. REQUIRES: k > 0.
  double Threshold() const {
    return heap_.size() < k_ ? -std::numeric_limits<double>::infinity()
                             : heap_.front().log_probability;
  }
  // The best tokens, most probable first. `check` as of SortByProbability.
  template <class Check>
  Result<std::vector<Candidate>> Sorted(const Check& check) && {
    KINGLET_RETURN_IF_ERROR(SortByProbability(heap_, check));
    return std::move(heap_);
  }

 private:
  size_t k_;
  std::vector<Candidate> heap_;
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_QUERIES_BEST_CANDIDATES_H_

#include "runtime/typing/word_search.h"

#include <algorithm>

#include "runtime/text/lower_case.h"

namespace kinglet::typing {
namespace {

// Bounds and scores add the same numbers in different orders.
constexpr double kRounding = 1e-9;
constexpr uint64_t kNodesBetweenChecks = 64;

}  // namespace

void EntryScores::Finish() {
  largest_.resize(0);
  const std::vector<float>* below = &scores_;
  while (below->size() > kBlock) {
    std::vector<float> above((below->size() + kBlock - 1) / kBlock);
    for (size_t block = 0; block < above.size(); ++block) {
      const size_t first = block * kBlock, last = std::min(first + kBlock, below->size());
      above[block] = *std::max_element(below->begin() + static_cast<std::ptrdiff_t>(first),
                                       below->begin() + static_cast<std::ptrdiff_t>(last));
    }
    largest_.push_back(std::move(above));
    below = &largest_.back();
  }
}

float EntryScores::Largest(size_t first, size_t last) const {
  float largest = -std::numeric_limits<float>::infinity();
  const std::vector<float>* level = &scores_;
  for (size_t next = 0;; ++next) {
    const auto take = [&](size_t& i) { largest = std::max(largest, (*level)[i]); };
    if (next == largest_.size() || last - first <= kBlock) {
      for (size_t i = first; i < last; ++i) take(i);
      return largest;
    }
    for (; first % kBlock != 0; ++first) take(first);
    while (last % kBlock != 0) take(--last);
    first /= kBlock;
    last /= kBlock;
    level = &largest_[next];
  }
}

void TouchCosts::Set(const WordTrie& trie, const Touches& touches, const ErrorCosts& errors) {
  const size_t count = touches.count();
  errors_ = errors;
  letters_ = trie.letters().size();
  costs_.assign(count * letters_, errors.substitution);
  deletions_.resize(letters_);
  for (size_t label = 0; label < letters_; ++label) {
    deletions_[label] = IsOptional(trie.letters()[label]) ? 0 : errors.deletion;
  }
  least_.assign(count, std::min(errors.insertion, errors.substitution));
  rest_.assign(count + 1, 0);
  is_impossible_ = false;
  for (size_t touch = count; touch-- > 0;) {
    double* const row = costs_.data() + touch * letters_;
    for (const auto& [character, cost] : touches.at(touch)) {
      for (const auto& [typed, label] : trie.Labels(LowerCase(character))) {
        row[label] = std::min(row[label], cost);
        least_[touch] = std::min(least_[touch], cost);
      }
    }
    is_impossible_ = is_impossible_ || least_[touch] == kNever;
    rest_[touch] = rest_[touch + 1] + least_[touch];
  }
}

std::vector<FoundWord> WordSearch::Find(const WordTrie& trie, const EntryScores& scores,
                                        const TouchCosts& costs, const WordQuestion& question,
                                        const StopSearch& stop, bool& was_stopped) {
  std::vector<FoundWord> found;
  if (question.count == 0 || costs.is_impossible()) return found;
  const size_t first = question.first, end = question.last, n = end - first, width = n + 1;
  const bool is_finished = question.is_finished;
  const ErrorCosts& errors = costs.errors();
  const auto threshold = [&] {
    return (found.size() == question.count ? found.back().score : question.floor) - kRounding;
  };
  const auto offer = [&](const FoundWord& word) {
    if (word.score < question.floor || word.score == -kNever) return;
    if (found.size() == question.count) {
      if (!IsBetter(word, found.back())) return;
      found.pop_back();
    }
    found.insert(std::upper_bound(found.begin(), found.end(), word, IsBetter), word);
  };
  // Offers the words that end at the node.
  const auto offer_words = [&](uint32_t node, double cost) {
    const uint32_t last_entry = trie.FirstEntry(node + 1);
    for (uint32_t entry = trie.FirstEntry(node); entry < last_entry; ++entry) {
      bool counts = true;
      for (uint32_t other = trie.FirstEntry(node); question.alike && other < last_entry; ++other) {
        const bool is_before = scores[other] > scores[entry] ||
                               (scores[other] == scores[entry] && other < entry);
        counts = counts && !(is_before && question.alike(entry, other));
      }
      if (counts) offer({scores[entry] - cost, cost, entry});
    }
  };
  const auto is_lower = [](const Open& a, const Open& b) { return a.bound < b.bound; };

  uint64_t opened = 0;
  rows_.assign(width, 0);
  queue_.clear();
  for (size_t i = 1; i <= n; ++i) rows_[i] = rows_[i - 1] + errors.insertion;
  const double reached = is_finished ? kNever : rows_[n];
  queue_.push_back({kNever, 0, reached, 0, 0, kNoRow});
  while (!queue_.empty()) {
    std::pop_heap(queue_.begin(), queue_.end(), is_lower);
    const Open open = queue_.back();
    queue_.pop_back();
    if (open.bound < threshold()) break;
    if (opened++ % kNodesBetweenChecks == 0 && stop && stop()) {
      was_stopped = true;
      break;
    }
    const uint16_t letter_before = trie.label(open.node);
    for (uint32_t node = open.node + 1; node < trie.End(open.node); node = trie.End(node)) {
      const double largest = scores.Largest(trie.FirstEntry(node), trie.FirstEntry(trie.End(node)));
      if (largest == -kNever || largest - open.cost < threshold()) continue;
      const uint16_t letter = trie.label(node);
      const auto row = static_cast<uint32_t>(rows_.size() / width);
      rows_.resize(rows_.size() + width);
      double* const now = rows_.data() + size_t{row} * width;
      const double* const above = rows_.data() + size_t{open.row} * width;
      const double* const two_above =
          open.row_before == kNoRow ? nullptr : rows_.data() + size_t{open.row_before} * width;
      const double deletion = costs.deletion(letter);
      now[0] = above[0] + deletion;
      double cost = now[0] + costs.Rest(first, end);
      for (size_t i = 1; i <= n; ++i) {
        const size_t touch = first + i - 1;
        const double by_letter = costs.at(touch)[letter];
        double least = std::min({above[i - 1] + by_letter, now[i - 1] + errors.insertion,
                                 above[i] + deletion});
        if (two_above != nullptr && i >= 2) {
          least = std::min(least, two_above[i - 2] + errors.transposition +
                                      costs.at(touch - 1)[letter] + costs.at(touch)[letter_before]);
        }
        now[i] = least;
        const double rest = costs.Rest(first + i, end);
        cost = std::min(cost, least + rest);
        // A transposition with the letter after this one.
        if (i >= 2) {
          cost = std::min(cost, above[i - 2] + errors.transposition + by_letter +
                                    costs.least(touch - 1) + rest);
        }
      }
      const double reached_here = is_finished ? kNever : std::min(open.reached, now[n]);
      offer_words(node, is_finished ? now[n] : reached_here);
      cost = std::min(cost, reached_here);
      if (cost < kNever && node + 1 < trie.End(node) && largest - cost >= threshold()) {
        queue_.push_back({largest - cost, cost, reached_here, node, row, open.row});
        std::push_heap(queue_.begin(), queue_.end(), is_lower);
      } else {
        rows_.resize(rows_.size() - width);
      }
    }
  }
  return found;
}

}  // namespace kinglet::typing

#include "runtime/typing/word_search.h"

#include <algorithm>
#include <array>

#include "runtime/text/lower_case.h"

namespace kinglet::typing {
namespace {

// Bounds and scores add the same numbers in different orders.
constexpr double kRounding = 1e-9;
constexpr uint64_t kNodesBetweenChecks = 64;
// A search whose rows have more costs, half a gigabyte, stops like one at its deadline.
constexpr size_t kMostCosts = size_t{1} << 26;
// Memory for more costs is not kept between searches.
constexpr size_t kCostsKept = 4096;

// What a letter of each label costs at least beyond TouchCosts::least(), in [first, last).
std::vector<double> ExcessOf(const WordTrie& trie, const TouchCosts& costs, size_t first,
                             size_t last) {
  std::vector<double> excess(trie.letters().size(), kNever);
  for (size_t label = 0; label < excess.size(); ++label) {
    const double* const by = costs.of(static_cast<uint16_t>(label));
    for (size_t touch = first; touch < last; ++touch) {
      excess[label] = std::min(excess[label], by[touch] - costs.least(touch));
    }
  }
  return excess;
}

}  // namespace

void EntryScores::Finish() {
  largest_.resize(0);
  const std::vector<float>* below = &scores_;
  while (below->size() > kBlock) {
    std::vector<float> above((below->size() + kBlock - 1) / kBlock);
    for (size_t block = 0; block < above.size(); ++block) {
      const size_t first = block * kBlock, count = std::min(kBlock, below->size() - first);
      // In vectors: each half with the other.
      std::array<float, kBlock> rest;
      rest.fill(-std::numeric_limits<float>::infinity());
      std::copy_n(below->data() + first, count, rest.begin());
      for (size_t half = kBlock / 2; half > 0; half /= 2) {
        for (size_t i = 0; i < half; ++i) rest[i] = std::max(rest[i], rest[i + half]);
      }
      above[block] = rest[0];
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
  const size_t letters = trie.letters().size();
  costs_.assign(count * letters, errors.substitution);
  deletions_.resize(letters);
  for (size_t label = 0; label < letters; ++label) {
    deletions_[label] = IsOptional(trie.letters()[label]) ? 0 : errors.deletion;
  }
  least_.assign(count, std::min(errors.insertion, errors.substitution));
  rest_.assign(count + 1, 0);
  is_impossible_ = false;
  more_to_insert_ = errors.insertion;
  for (size_t touch = count; touch-- > 0;) {
    for (const auto& [character, cost] : touches.at(touch)) {
      for (const auto& [typed, label] : trie.Labels(LowerCase(character))) {
        double& of_letter = costs_[label * count + touch];
        of_letter = std::min(of_letter, cost);
        least_[touch] = std::min(least_[touch], cost);
      }
    }
    more_to_insert_ = std::min(more_to_insert_, errors.insertion - least_[touch]);
    is_impossible_ = is_impossible_ || least_[touch] == kNever;
    rest_[touch] = rest_[touch + 1] + least_[touch];
  }
}

void TouchCosts::TakeBounds(const TouchCosts& other) {
  least_ = other.least_;
  rest_ = other.rest_;
  more_to_insert_ = other.more_to_insert_;
  is_impossible_ = other.is_impossible_;
}

void WordSearch::Unpack(const Row& row, std::span<double> costs) const {
  std::fill(costs.begin(), costs.end(), kNever);
  for (size_t i = row.first; i <= row.last; ++i) costs[i] = rows_[row.at + i - row.first];
}

std::vector<FoundWord> WordSearch::Find(const WordTrie& trie, const EntryScores& scores,
                                        const TouchCosts& costs, const WordQuestion& question,
                                        const StopSearch& stop, bool& was_stopped) {
  std::vector<FoundWord> found;
  if (question.count == 0 || costs.is_impossible()) return found;
  const size_t first = question.first, end = question.last, n = end - first;
  const bool is_finished = question.is_finished;
  const ErrorCosts& errors = costs.errors();
  // The score that a word must reach.
  double least = question.lowest;
  const auto threshold = [&] { return least - kRounding; };
  const auto offer = [&](const FoundWord& word) {
    if (word.score < least || word.score == -kNever) return;
    if (found.size() == question.count) {
      if (!IsBetter(word, found.back())) return;
      found.pop_back();
    }
    found.insert(std::upper_bound(found.begin(), found.end(), word, IsBetter), word);
    least = std::max(least, found.front().score - question.margin);
    while (found.back().score < least) found.pop_back();
    if (found.size() == question.count) least = found.back().score;
  };
  // Offers the words that end at the node.
  const auto offer_words = [&](uint32_t node, double cost) {
    const uint32_t last_entry = trie.FirstEntry(node + 1);
    for (uint32_t entry = trie.FirstEntry(node); entry < last_entry; ++entry) {
      bool counts = scores[entry] - cost >= least;
      for (uint32_t other = trie.FirstEntry(node); counts && question.alike && other < last_entry;
           ++other) {
        const bool is_before =
            scores[other] > scores[entry] || (scores[other] == scores[entry] && other < entry);
        counts = counts && !(is_before && question.alike(entry, other));
      }
      if (counts) offer({scores[entry] - cost, cost, entry});
    }
  };
  const auto is_lower = [](const Open& a, const Open& b) { return a.bound < b.bound; };

  if (trie.nodes() == 1) return found;
  uint64_t opened = 0;
  queue_.clear();
  const std::vector<double> excess = ExcessOf(trie, costs, first, end);
  // What touches from each one on cost at least.
  std::array<double, kMostTouches + 1> rest_of;
  for (size_t i = 0; i <= n; ++i) rest_of[i] = costs.Rest(first + i, end);
  rows_.assign(1, 0);
  for (size_t i = 1; i <= n; ++i) rows_.push_back(rows_.back() + errors.insertion);
  Open root = {
      kNever, 0, scores.Largest(0, trie.entries()), rest_of[0], is_finished ? kNever : rows_[n], 0,
      {},     {}};
  root.row.first = 0;
  root.row.last = static_cast<uint16_t>(n);
  queue_.push_back(root);
  while (!queue_.empty()) {
    std::pop_heap(queue_.begin(), queue_.end(), is_lower);
    const Open open = queue_.back();
    queue_.pop_back();
    if (open.bound < threshold()) break;
    const bool is_full = rows_.size() > kMostCosts;
    if (is_full || (opened++ % kNodesBetweenChecks == 0 && stop && stop())) {
      was_stopped = true;
      break;
    }
    // By touches aligned: costs after the letter above; the same and a transposition whose second
    // letter is the child's, without what the child's letter costs; and bounds of a transposition
    // whose first letter is the child's.
    std::array<double, kMostTouches + 3> above, swapped, to_swap;
    Unpack(open.row, std::span(above).first(n + 1));
    Unpack(open.before, std::span(swapped).first(n + 1));
    const double* const by_before = costs.of(trie.label(open.node)) + first;
    for (size_t i = n + 1; i-- > 0;) {
      swapped[i] = i < 2 ? kNever : swapped[i - 2] + errors.transposition + by_before[i - 1];
      to_swap[i] =
          i < 2 ? kNever
                : above[i - 2] + errors.transposition + costs.least(first + i - 2) + rest_of[i];
    }
    const size_t low = std::min<size_t>(open.row.first, open.before.first + 2);
    const size_t high = std::min<size_t>(
        n, std::max<size_t>(open.row.last + size_t{2}, open.before.last + size_t{2}));
    for (uint32_t node = open.node + 1; node < trie.End(open.node); node = trie.End(node)) {
      // Most letters are far from all touches, so that no word below them counts.
      const uint16_t label = trie.label(node);
      const double deletion = costs.deletion(label);
      const double quick = std::min(open.reached, open.through + std::min(deletion, excess[label]));
      if (open.largest - quick < threshold()) continue;
      const double largest = scores.Largest(trie.FirstEntry(node), trie.FirstEntry(trie.End(node)));
      const double most = largest - threshold();  // that a word may cost
      if (largest == -kNever || open.cost > most) continue;
      const double* const by = costs.of(label) + first;
      const size_t fewest = is_finished ? trie.Fewest(node) : 0;
      const size_t longest = trie.Most(node) == WordTrie::kMostLetters ? n : trie.Most(node);
      // What the touches after the first i, and letters of the subtree, cost at least.
      const auto rest = [&](size_t i) {
        const size_t left = n - i;
        const double more = left > longest
                                ? static_cast<double>(left - longest) * costs.more_to_insert()
                            : left < fewest ? static_cast<double>(fewest - left) * errors.deletion
                                            : 0;
        return rest_of[i] + more;
      };
      Row row;
      row.at = static_cast<uint32_t>(rows_.size());
      double cost = kNever, swap = kNever, through = kNever, before = kNever, all = kNever;
      for (size_t i = low; i <= n; ++i) {
        double cheapest = std::min(above[i] + deletion, before + errors.insertion);
        if (i > 0) cheapest = std::min(cheapest, above[i - 1] + by[i - 1]);
        if (i > 1) {
          cheapest = std::min(cheapest, swapped[i] + by[i - 2]);
          swap = std::min(swap, to_swap[i] + by[i - 1]);
        }
        const double in_all = cheapest + rest(i);
        before = in_all > most ? kNever : cheapest;
        if (before == kNever) {
          if (i >= high) break;
          continue;
        }
        cost = std::min(cost, in_all);
        through = std::min(through, cheapest + rest_of[i]);
        if (row.first > row.last) row.first = static_cast<uint16_t>(i);
        rows_.resize(row.at + i - row.first + 1, kNever);
        rows_.back() = before;
        row.last = static_cast<uint16_t>(i);
        if (i == n) all = before;
      }
      const double reached = is_finished ? kNever : std::min(open.reached, all);
      offer_words(node, is_finished ? all : reached);
      through = std::min(through, swap);
      cost = std::min({cost, swap, reached});
      if (cost <= most && cost < kNever && node + 1 < trie.End(node)) {
        queue_.push_back({largest - cost, cost, largest, through, reached, node, row, open.row});
        std::push_heap(queue_.begin(), queue_.end(), is_lower);
      } else {
        rows_.resize(row.at);
      }
    }
  }
  // An assignment of {} would keep the memory.
  if (rows_.capacity() > kCostsKept) rows_ = std::vector<double>();
  if (queue_.capacity() > kCostsKept / 8) queue_ = std::vector<Open>();
  return found;
}

}  // namespace kinglet::typing

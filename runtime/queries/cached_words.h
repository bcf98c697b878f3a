// The words that a stream's neural cache holds, each with its share of the weights.
#ifndef KINGLET_RUNTIME_QUERIES_CACHED_WORDS_H_
#define KINGLET_RUNTIME_QUERIES_CACHED_WORDS_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "kernels/cluster_of.h"

namespace kinglet {

// From token to token one pair of a cache is replaced and all weights are new. So it is remembered
// whose word each pair has, and a token costs one addition for each pair. Words whose pairs are
// gone stay known, with weight 0, until there are too many of them. Of the size of the
// cache, not of the vocabulary: with many lanes a table is asked for from memory that is in no
// processor cache.
template <class T>
class CachedWords {
 public:
  // For at most so many pairs, of words of clusters of which cluster i has those from firsts[i] on
  // (none: it is the same as the next one's), firsts[0] = 0. Throws std::bad_alloc.
  CachedWords(uint32_t pairs, std::vector<uint32_t> firsts)
      : firsts_(std::move(firsts)), places_(Places(pairs), 0), most_(Most(pairs)) {
    ids_.reserve(most_);
    next_.reserve(most_);
    weights_.reserve(most_);
    pairs_.reserve(pairs);
    Clear();
  }
  // What one allocates.
  static uint64_t Bytes(uint32_t pairs, size_t clusters) {
    return Places(pairs) * sizeof(uint32_t) + Most(pairs) * (2 * sizeof(uint32_t) + sizeof(T)) +
           pairs * sizeof(Pair) + 2 * clusters * sizeof(uint32_t);
  }

  // Forgets all words, as is best before those of another stream.
  void Clear() {
    if (!ids_.empty()) std::fill(places_.begin(), places_.end(), 0);
    ids_.clear();
    next_.clear();
    weights_.clear();
    pairs_.clear();
    newest_.assign(firsts_.size(), kNone);
  }
  // Pair i is words[i] with weights[i] >= 0. A word's weight is one chain of sums in the order of
  // pairs. REQUIRES: as many as were announced, at most, and as many of each.
  void Set(std::span<const uint32_t> words, std::span<const T> weights) {
    if (TryToSet(words, weights)) return;
    Clear();
    TryToSet(words, weights);
  }
  // 0 for a word that is not there.
  T WeightOf(uint32_t id) const {
    if (ids_.empty()) return T{0};
    const uint32_t place = places_[PlaceOf(id)];
    return place == 0 ? T{0} : weights_[place - 1];
  }
  // f(id, weight) for the cluster's words of weight > 0, in no order that means anything.
  template <class F>
  void ForEachOf(size_t cluster, const F& f) const {
    for (uint32_t i = newest_[cluster]; i != kNone; i = next_[i]) {
      if (weights_[i] > T{0}) f(ids_[i], weights_[i]);
    }
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  // The word that a pair was last seen with.
  struct Pair {
    uint32_t id, word;  // word: index into ids_
  };

  // Words that are known: all of a full cache, and some that it has lost.
  static uint32_t Most(uint32_t pairs) { return pairs + std::min<uint32_t>(pairs, 1024); }
  // At most half of them are taken.
  static size_t Places(uint32_t pairs) {
    return pairs == 0 ? 0 : std::bit_ceil(2 * size_t{Most(pairs)});
  }

  // False: there are too many words.
  bool TryToSet(std::span<const uint32_t> words, std::span<const T> weights) {
    std::fill(weights_.begin(), weights_.end(), T{0});
    for (size_t i = 0; i < words.size(); ++i) {
      if (i == pairs_.size()) {
        pairs_.push_back({words[i], IndexOf(words[i])});
      } else if (pairs_[i].id != words[i]) {
        pairs_[i] = {words[i], IndexOf(words[i])};
      }
      if (pairs_[i].word == kNone) return false;
      weights_[pairs_[i].word] += weights[i];
    }
    return true;
  }
  // Makes the word known; kNone: there is no room.
  uint32_t IndexOf(uint32_t id) {
    uint32_t& place = places_[PlaceOf(id)];
    if (place == 0) {
      if (ids_.size() == most_) return kNone;
      uint32_t& newest = newest_[ClusterOf(id, static_cast<uint32_t>(firsts_.size()),
                                           [this](uint32_t i) { return firsts_[i]; })];
      next_.push_back(newest);
      newest = static_cast<uint32_t>(ids_.size());
      ids_.push_back(id);
      weights_.push_back(T{0});
      place = static_cast<uint32_t>(ids_.size());
    }
    return place - 1;
  }
  // Where the word is, or the empty place where it would be.
  size_t PlaceOf(uint32_t id) const {
    const size_t mask = places_.size() - 1;
    size_t at = (id * 0x9E3779B97F4A7C15) >> 32 & mask;  // Fibonacci hashing
    while (places_[at] != 0 && ids_[places_[at] - 1] != id) at = (at + 1) & mask;
    return at;
  }

  std::vector<uint32_t> firsts_;
  std::vector<uint32_t> newest_;  // of each cluster the word that became known last
  // Of each known word. `next` is the one of its cluster that became known before it.
  std::vector<uint32_t> ids_, next_;
  std::vector<T> weights_;  // not normalised
  std::vector<Pair> pairs_;
  std::vector<uint32_t> places_;  // 1 + index of a word; 0: none
  uint32_t most_;
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_QUERIES_CACHED_WORDS_H_

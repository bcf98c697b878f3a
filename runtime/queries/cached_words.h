// The words that a stream's neural cache holds, each with the sum of its pairs' weights.
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

// From one token to the next, one pair of the cache is replaced and all weights change. The table
// remembers which word each pair has, so a token costs one addition for each pair. Words whose
// pairs are gone stay in the table with weight 0 until there are too many of them. The table's size
// is that of the cache, not of the vocabulary, because with many lanes it is read from memory, not
// from the processor's caches.
template <class T>
class CachedWords {
 public:
  // For at most `pairs` pairs. Cluster i has the words from firsts[i] up to the next cluster's
  // first one (none if these are equal); firsts[0] = 0. Throws std::bad_alloc.
  CachedWords(uint32_t pairs, std::vector<uint32_t> firsts)
      : firsts_(std::move(firsts)), places_(Places(pairs), 0), most_(Most(pairs)) {
    ids_.reserve(most_);
    next_.reserve(most_);
    weights_.reserve(most_);
    pairs_.reserve(pairs);
    Clear();
  }
  // The bytes that a table allocates.
  static uint64_t Bytes(uint32_t pairs, size_t clusters) {
    return Places(pairs) * sizeof(uint32_t) + Most(pairs) * (2 * sizeof(uint32_t) + sizeof(T)) +
           pairs * sizeof(Pair) + 2 * clusters * sizeof(uint32_t);
  }

  // Forgets all words; called before the table is used for another stream.
  void Clear() {
    if (!ids_.empty()) std::fill(places_.begin(), places_.end(), 0);
    ids_.clear();
    next_.clear();
    weights_.clear();
    pairs_.clear();
    newest_.assign(firsts_.size(), kNone);
  }
  // Sets the pairs: pair i is words[i] with weights[i] >= 0. A word's weight is the sum over its
  // pairs, added in their order. REQUIRES: as many words as weights, at most the constructor's
  // `pairs`.
  void Set(std::span<const uint32_t> words, std::span<const T> weights) {
    if (TryToSet(words, weights)) return;
    Clear();
    TryToSet(words, weights);
  }
  // 0 for a word that no pair has.
  T WeightOf(uint32_t id) const {
    if (ids_.empty()) return T{0};
    const uint32_t place = places_[PlaceOf(id)];
    return place == 0 ? T{0} : weights_[place - 1];
  }
  // Calls f(id, weight) for the cluster's words of weight > 0, in an arbitrary order.
  template <class F>
  void ForEachOf(size_t cluster, const F& f) const {
    for (uint32_t i = newest_[cluster]; i != kNone; i = next_[i]) {
      if (weights_[i] > T{0}) f(ids_[i], weights_[i]);
    }
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  // A pair, as it was last set: its word by id and by index into ids_.
  struct Pair {
    uint32_t id, word;
  };

  // The most words that a table holds: all of a full cache, and some that it no longer has.
  static uint32_t Most(uint32_t pairs) { return pairs + std::min<uint32_t>(pairs, 1024); }
  // At most half of the places are taken.
  static size_t Places(uint32_t pairs) {
    return pairs == 0 ? 0 : std::bit_ceil(2 * size_t{Most(pairs)});
  }

  // Returns false if the table has no room for all words.
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
  // The index of the word, which is added if the table does not have it; kNone if there is no room.
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
  // The place of the word in the hash table, or the empty place where it would be.
  size_t PlaceOf(uint32_t id) const {
    const size_t mask = places_.size() - 1;
    size_t at = (id * 0x9E3779B97F4A7C15) >> 32 & mask;  // Fibonacci hashing
    while (places_[at] != 0 && ids_[places_[at] - 1] != id) at = (at + 1) & mask;
    return at;
  }

  std::vector<uint32_t> firsts_;
  std::vector<uint32_t> newest_;  // by cluster: the word that was added last
  // By word: its id, and the word of the same cluster that was added before it.
  std::vector<uint32_t> ids_, next_;
  std::vector<T> weights_;  // not normalised
  std::vector<Pair> pairs_;
  std::vector<uint32_t> places_;  // the hash table: 1 + index of a word; 0: empty
  uint32_t most_;
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_QUERIES_CACHED_WORDS_H_

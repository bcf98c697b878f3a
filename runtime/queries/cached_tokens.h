// A table of the tokens that a stream's neural cache holds, each with the sum of its pairs'
// weights.
#ifndef KINGLET_RUNTIME_QUERIES_CACHED_TOKENS_H_
#define KINGLET_RUNTIME_QUERIES_CACHED_TOKENS_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "kernels/cache_weight.h"
#include "kernels/cluster_of.h"

namespace kinglet {

// From one token to the next, one pair of the cache is replaced and all weights change. The table
// remembers the token of each pair, so a token costs one addition for each pair. Tokens whose pairs
// were all replaced stay in the table with weight 0 until the table is full. The table's size
// is that of the cache, not of the vocabulary, because with many lanes it is read from memory, not
// from the processor's caches.
template <class T>
class CachedTokens {
 public:
  // A table for at most `pairs` pairs. The tokens of cluster i are [firsts[i], firsts[i + 1]),
  // which may be empty; firsts[0] = 0. Throws std::bad_alloc.
  CachedTokens(uint32_t pairs, std::vector<uint32_t> firsts)
      : firsts_(std::move(firsts)),
        newest_(firsts_.size(), kNone),
        ids_(Most(pairs)),
        next_(Most(pairs)),
        units_(Most(pairs)),
        pairs_(pairs),
        places_(Places(pairs), 0) {}
  // The bytes that a table allocates.
  static uint64_t Bytes(uint32_t pairs, size_t clusters) {
    return Places(pairs) * sizeof(uint32_t) +
           Most(pairs) * (2 * sizeof(uint32_t) + sizeof(CacheUnits<T>)) + pairs * sizeof(Pair) +
           2 * clusters * sizeof(uint32_t);
  }

  // Forgets all tokens. Call before the table is used for another stream.
  void Clear() {
    if (tokens_ > 0) std::fill(places_.begin(), places_.end(), 0);
    tokens_ = 0;
    known_pairs_ = 0;
    std::fill(newest_.begin(), newest_.end(), kNone);
  }
  // Sets the pairs: pair i is tokens[i] with weights[i] >= 0. A token's weight is the sum over its
  // pairs (kernels/cache_weight.h). REQUIRES: as many tokens as weights, at most the constructor's
  // `pairs`.
  void Set(std::span<const uint32_t> tokens, std::span<const T> weights) {
    if (TryToSet(tokens, weights)) return;
    Clear();
    TryToSet(tokens, weights);
  }
  // The weight of a token; 0 if no pair contains the token.
  T WeightOf(uint32_t id) const {
    if (tokens_ == 0) return T{0};
    const uint32_t place = places_[PlaceOf(id)];
    return place == 0 ? T{0} : WeightOfUnits<T>(units_[place - 1]);
  }
  // Calls f(id, weight) for the cluster's tokens of weight > 0, in an arbitrary order.
  template <class F>
  void ForEachOf(size_t cluster, const F& f) const {
    for (uint32_t i = newest_[cluster]; i != kNone; i = next_[i]) {
      if (units_[i] > CacheUnits<T>{0}) f(ids_[i], WeightOfUnits<T>(units_[i]));
    }
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  // The token of a pair that was set last: its id and its index in ids_.
  struct Pair {
    uint32_t id, token;
  };

  // The most tokens in a table: those of a full cache, and some tokens of weight 0.
  static uint32_t Most(uint32_t pairs) { return pairs + std::min<uint32_t>(pairs, 1024); }
  // The number of places of the hash table, of which at most half are used.
  static size_t Places(uint32_t pairs) {
    return pairs == 0 ? 0 : std::bit_ceil(2 * size_t{Most(pairs)});
  }

  // Returns false if the table has no room for all tokens.
  bool TryToSet(std::span<const uint32_t> tokens, std::span<const T> weights) {
    std::fill_n(units_.begin(), tokens_, CacheUnits<T>{0});
    for (size_t i = 0; i < tokens.size(); ++i) {
      Pair& pair = pairs_[i];
      if (i >= known_pairs_ || pair.id != tokens[i]) {
        pair = {tokens[i], IndexOf(tokens[i])};
        if (pair.token == kNone) return false;
      }
      units_[pair.token] += UnitsOf(weights[i]);
    }
    known_pairs_ = std::max(known_pairs_, tokens.size());
    return true;
  }
  // The index of the token, which is added if it is not in the table; kNone if the table is full.
  uint32_t IndexOf(uint32_t id) {
    uint32_t& place = places_[PlaceOf(id)];
    if (place == 0) {
      if (tokens_ == ids_.size()) return kNone;
      uint32_t& newest = newest_[ClusterOf(id, static_cast<uint32_t>(firsts_.size()),
                                           [this](uint32_t i) { return firsts_[i]; })];
      next_[tokens_] = newest;
      newest = tokens_;
      ids_[tokens_] = id;
      units_[tokens_] = CacheUnits<T>{0};
      place = ++tokens_;
    }
    return place - 1;
  }
  // The place of the token in the hash table, or the empty place where it would be.
  size_t PlaceOf(uint32_t id) const {
    const size_t mask = places_.size() - 1;
    size_t at = (id * 0x9E3779B97F4A7C15) >> 32 & mask;  // Fibonacci hashing
    while (places_[at] != 0 && ids_[places_[at] - 1] != id) at = (at + 1) & mask;
    return at;
  }

  std::vector<uint32_t> firsts_;
  std::vector<uint32_t> newest_;  // by cluster: the token that was added last
  // By token, of which there are tokens_: its id, and the token of the same cluster that was added
  // before it. All arrays have the size of the fullest table: refilling one for another lane, which
  // takes as long as hashing its tokens, would otherwise take as long again to check for room.
  std::vector<uint32_t> ids_, next_;
  std::vector<CacheUnits<T>> units_;  // not normalised
  std::vector<Pair> pairs_;           // known_pairs_ of them have been set
  std::vector<uint32_t> places_;      // the hash table: 1 + the index of a token, or 0 if empty
  uint32_t tokens_ = 0;
  size_t known_pairs_ = 0;
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_QUERIES_CACHED_TOKENS_H_

// The words that a stream's neural cache holds, each with its share of the weights.
#ifndef KINGLET_RUNTIME_CACHED_WORDS_H_
#define KINGLET_RUNTIME_CACHED_WORDS_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace kinglet {

// A list of distinct words and a hash table of their places in it. As large as the cache, not as
// the vocabulary: with many lanes the list is asked for from memory that is in no processor cache.
template <class T>
class CachedWords {
 public:
  struct Word {
    uint32_t id;
    T weight;  // not normalised
  };

  // For at most `capacity` distinct words. Throws std::bad_alloc.
  explicit CachedWords(uint32_t capacity) : places_(Places(capacity), 0) {
    words_.reserve(capacity);
  }
  // What one allocates.
  static uint64_t Bytes(uint32_t capacity) {
    return Places(capacity) * sizeof(uint32_t) + capacity * sizeof(Word);
  }

  void Clear() {
    if (words_.empty()) return;
    words_.clear();
    std::fill(places_.begin(), places_.end(), 0);
  }
  // One chain of sums for each word, in the order of calls.
  void Add(uint32_t id, T weight) {
    uint32_t& place = places_[PlaceOf(id)];
    if (place == 0) {
      words_.push_back({id, weight});
      place = static_cast<uint32_t>(words_.size());
    } else {
      words_[place - 1].weight += weight;
    }
  }
  // 0 for a word that is not there.
  T WeightOf(uint32_t id) const {
    if (words_.empty()) return T{0};
    const uint32_t place = places_[PlaceOf(id)];
    return place == 0 ? T{0} : words_[place - 1].weight;
  }

  // In the order in which they came.
  auto begin() const { return words_.begin(); }
  auto end() const { return words_.end(); }

 private:
  // At most half of them are taken.
  static size_t Places(uint32_t capacity) {
    return capacity == 0 ? 0 : std::bit_ceil(2 * size_t{capacity});
  }
  // Where the word is, or the empty place where it would be.
  size_t PlaceOf(uint32_t id) const {
    const size_t mask = places_.size() - 1;
    size_t at = (id * 0x9E3779B97F4A7C15) >> 32 & mask;  // Fibonacci hashing
    while (places_[at] != 0 && words_[places_[at] - 1].id != id) at = (at + 1) & mask;
    return at;
  }

  std::vector<Word> words_;
  std::vector<uint32_t> places_;  // 1 + index into words_; 0: none
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_CACHED_WORDS_H_

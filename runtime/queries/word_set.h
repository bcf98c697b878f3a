// A set of the vocabulary's words: those that a caller allows, or those that begin with a prefix.
#ifndef KINGLET_RUNTIME_QUERIES_WORD_SET_H_
#define KINGLET_RUNTIME_QUERIES_WORD_SET_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace kinglet {

// A set with one bit for each word of the vocabulary, so that a query meets the words in the order
// of ids, which is that of its clusters, and no word twice.
class WordSet {
 public:
  // The empty set of words below `vocabulary_size`. Throws std::bad_alloc.
  explicit WordSet(uint32_t vocabulary_size)
      : words_((size_t{vocabulary_size} + kBits - 1) / kBits), vocabulary_size_(vocabulary_size) {}
  // The set of these ids, in any order, also repeated. REQUIRES: ids < vocabulary_size.
  WordSet(uint32_t vocabulary_size, std::span<const uint32_t> ids) : WordSet(vocabulary_size) {
    for (const uint32_t id : ids) Add(id);
  }

  // REQUIRES, here and below: id < vocabulary_size().
  void Add(uint32_t id) {
    uint64_t& word = words_[id / kBits];
    const uint64_t bit = uint64_t{1} << id % kBits;
    size_ += static_cast<uint32_t>(~word >> id % kBits & 1);
    word |= bit;
  }
  void Remove(uint32_t id) {
    uint64_t& word = words_[id / kBits];
    const uint64_t bit = uint64_t{1} << id % kBits;
    size_ -= static_cast<uint32_t>(word >> id % kBits & 1);
    word &= ~bit;
  }
  bool Contains(uint32_t id) const { return (words_[id / kBits] >> id % kBits & 1) != 0; }
  uint32_t size() const { return size_; }
  uint32_t vocabulary_size() const { return vocabulary_size_; }

  // Calls f(id) for the words of the set from `first` up to `first + count`, ascending.
  template <class F>
  void ForEachOf(uint32_t first, uint32_t count, const F& f) const {
    const size_t end = size_t{first} + count;
    for (size_t i = first / kBits; i * kBits < end; ++i) {
      uint64_t word = words_[i];
      if (i == first / kBits) word &= ~uint64_t{0} << first % kBits;
      for (; word != 0; word &= word - 1) {
        const size_t id = i * kBits + static_cast<size_t>(std::countr_zero(word));
        if (id >= end) return;
        f(static_cast<uint32_t>(id));
      }
    }
  }
  // Their number, and whether there are any.
  uint32_t CountOf(uint32_t first, uint32_t count) const {
    uint32_t n = 0;
    ForEachOf(first, count, [&n](uint32_t) { ++n; });
    return n;
  }
  bool HasAnyOf(uint32_t first, uint32_t count) const {
    uint32_t next = first;
    const uint32_t end = first + count;
    for (; next < end && next % kBits != 0; ++next) {
      if (Contains(next)) return true;
    }
    for (; end - next >= kBits; next += kBits) {
      if (words_[next / kBits] != 0) return true;
    }
    for (; next < end; ++next) {
      if (Contains(next)) return true;
    }
    return false;
  }

 private:
  static constexpr size_t kBits = 64;
  std::vector<uint64_t> words_;
  uint32_t vocabulary_size_;
  uint32_t size_ = 0;
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_QUERIES_WORD_SET_H_

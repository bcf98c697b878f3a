// A set of the vocabulary's tokens: those that a caller allows, or those that begin with a prefix.
#ifndef KINGLET_RUNTIME_QUERIES_TOKEN_SET_H_
#define KINGLET_RUNTIME_QUERIES_TOKEN_SET_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace kinglet {

// A set with one bit for each token of the vocabulary, so that a query meets the tokens in the
// order of ids, which is that of its clusters, and no token twice.
class TokenSet {
 public:
  // The empty set of tokens below `vocabulary_size`. Throws std::bad_alloc.
  explicit TokenSet(uint32_t vocabulary_size)
      : bits_((size_t{vocabulary_size} + kBits - 1) / kBits), vocabulary_size_(vocabulary_size) {}
  // The set of these ids, in any order, also repeated. REQUIRES: ids < vocabulary_size.
  TokenSet(uint32_t vocabulary_size, std::span<const uint32_t> ids) : TokenSet(vocabulary_size) {
    for (const uint32_t id : ids) Add(id);
  }

  // REQUIRES, here and below: id < vocabulary_size().
  void Add(uint32_t id) {
    uint64_t& bits = bits_[id / kBits];
    const uint64_t bit = uint64_t{1} << id % kBits;
    size_ += static_cast<uint32_t>(~bits >> id % kBits & 1);
    bits |= bit;
  }
  void Remove(uint32_t id) {
    uint64_t& bits = bits_[id / kBits];
    const uint64_t bit = uint64_t{1} << id % kBits;
    size_ -= static_cast<uint32_t>(bits >> id % kBits & 1);
    bits &= ~bit;
  }
  bool Contains(uint32_t id) const { return (bits_[id / kBits] >> id % kBits & 1) != 0; }
  uint32_t size() const { return size_; }
  uint32_t vocabulary_size() const { return vocabulary_size_; }

  // Calls f(id) for the tokens of the set from `first` up to `first + count`, ascending.
  template <class F>
  void ForEachOf(uint32_t first, uint32_t count, const F& f) const {
    const size_t end = size_t{first} + count;
    for (size_t i = first / kBits; i * kBits < end; ++i) {
      uint64_t bits = bits_[i];
      if (i == first / kBits) bits &= ~uint64_t{0} << first % kBits;
      for (; bits != 0; bits &= bits - 1) {
        const size_t id = i * kBits + static_cast<size_t>(std::countr_zero(bits));
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
      if (bits_[next / kBits] != 0) return true;
    }
    for (; next < end; ++next) {
      if (Contains(next)) return true;
    }
    return false;
  }

 private:
  static constexpr size_t kBits = 64;
  std::vector<uint64_t> bits_;
  uint32_t vocabulary_size_;
  uint32_t size_ = 0;
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_QUERIES_TOKEN_SET_H_

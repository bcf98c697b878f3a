// Which rows a cache of bounded size holds. Its memory is the caller's and only words: the rows lie
// elsewhere, row i of the cache in slot i. What it holds follows from the tokens that were asked
// for and nothing else.
#ifndef KINGLET_KERNELS_ROW_CACHE_H_
#define KINGLET_KERNELS_ROW_CACHE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace kinglet {

// The token's set is token mod sets; of the `ways` slots of a set the one gives way whose row was
// asked for the longest ago. So looking a row up takes no more than `ways` comparisons, however
// large the cache.
struct RowCacheShape {
  static constexpr uint32_t kWays = 8;
  uint32_t sets = 0, ways = 0;

  // At most `rows` of them: as many sets of 8 as fit, or a slot for each word if there is room for
  // all. REQUIRES: both at least 1.
  static RowCacheShape Of(uint32_t rows, uint32_t words) {
    if (rows >= words) return {words, 1};
    const uint32_t ways = std::min(rows, kWays);
    return {rows / ways, ways};
  }
  uint64_t rows() const { return uint64_t{sets} * ways; }
  // That the cache keeps about its rows: two for each. All zero: it is empty.
  uint64_t memory_words() const { return 2 * rows(); }
};

class RowCache {
 public:
  // `memory` holds shape.memory_words() and outlives it.
  RowCache(const RowCacheShape& shape, uint32_t* memory) : shape_(shape), memory_(memory) {}

  // The slot of the token's row, which thereby is the one asked for last.
  std::optional<uint64_t> Find(uint32_t token) {
    const uint64_t first = FirstSlot(token);
    for (uint64_t slot = first; slot < first + shape_.ways; ++slot) {
      if (Holder(slot) != token + 1) continue;
      Touch(first, slot, Age(slot));
      return slot;
    }
    return std::nullopt;
  }

  // A slot that is the token's from now on. REQUIRES: Find has not found it.
  uint64_t Take(uint32_t token) {
    const uint64_t first = FirstSlot(token);
    uint64_t taken = first;
    for (uint64_t slot = first; slot < first + shape_.ways; ++slot) {
      if (Holder(slot) == 0) {
        taken = slot;
        break;
      }
      if (Age(slot) > Age(taken)) taken = slot;
    }
    Touch(first, taken, shape_.ways);
    Holder(taken) = token + 1;
    return taken;
  }

 private:
  uint64_t FirstSlot(uint32_t token) const { return uint64_t{token % shape_.sets} * shape_.ways; }
  // The token that has the slot, plus 1; 0: none.
  uint32_t& Holder(uint64_t slot) const { return memory_[2 * slot]; }
  // How many of the set's other rows were asked for since this one was.
  uint32_t& Age(uint64_t slot) const { return memory_[2 * slot + 1]; }

  // Rows of the set younger than `age` grow older; the slot's is the youngest.
  void Touch(uint64_t first, uint64_t touched, uint32_t age) {
    for (uint64_t slot = first; slot < first + shape_.ways; ++slot) {
      if (Holder(slot) != 0 && Age(slot) < age) ++Age(slot);
    }
    Age(touched) = 0;
  }

  RowCacheShape shape_;
  uint32_t* memory_;
};

}  // namespace kinglet

#endif  // KINGLET_KERNELS_ROW_CACHE_H_

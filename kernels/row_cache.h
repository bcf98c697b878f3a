// The index of a cache of rows: which token's row each slot contains. The index is an array of
// 32-bit values that belongs to the caller; the rows are in DefineRows (op.h). The contents depend
// on nothing but the sequence of tokens, and on which were asked for together.
#ifndef KINGLET_KERNELS_ROW_CACHE_H_
#define KINGLET_KERNELS_ROW_CACHE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace kinglet {

// A set-associative cache: token t belongs to set t mod `sets`, which has `ways` slots. A new row
// evicts the least recently used of its set. So a look-up takes at most `ways` comparisons,
// whatever the size of the cache.
struct RowCacheShape {
  static constexpr uint32_t kWays = 8;
  uint32_t sets = 0, ways = 0;

  // A cache of at most `rows` rows: as many sets of 8 as fit, or a slot for each token if there is
  // room for all. REQUIRES: both at least 1.
  static RowCacheShape Of(uint32_t rows, uint32_t tokens) {
    if (rows >= tokens) return {tokens, 1};
    const uint32_t ways = std::min(rows, kWays);
    return {rows / ways, ways};
  }
  uint64_t rows() const { return uint64_t{sets} * ways; }
  // How many 32-bit values of memory the cache needs: two for each row. All zeros are an empty
  // cache.
  uint64_t index_size() const { return 2 * rows(); }
};

class RowCache {
 public:
  // `memory` has shape.index_size() values and outlives the cache.
  RowCache(const RowCacheShape& shape, uint32_t* memory) : shape_(shape), memory_(memory) {}

  // The slot of the token's row, which becomes the most recently used.
  std::optional<uint64_t> Find(uint32_t token) {
    const uint64_t first = FirstSlot(token);
    for (uint64_t slot = first; slot < first + shape_.ways; ++slot) {
      if (Holder(slot) != token + 1) continue;
      Touch(first, slot, Age(slot));
      return slot;
    }
    return std::nullopt;
  }

  // Gives the token a slot: an empty one, or the least recently used of its set. REQUIRES: Find has
  // not found the token.
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
  // The token whose row is in the slot, plus 1; 0 if the slot is empty.
  uint32_t& Holder(uint64_t slot) const { return memory_[2 * slot]; }
  // How many of the set's other rows have been used since the slot's row was.
  uint32_t& Age(uint64_t slot) const { return memory_[2 * slot + 1]; }

  // Makes the slot the most recently used: rows of the set younger than `age` grow older by one.
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

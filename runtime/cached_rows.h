// Which rows of DeFINE units a stream's row caches contain, computed from the stream's tokens
// alone. The cost of a token depends on the caches (runtime/accounting).
#ifndef KINGLET_RUNTIME_CACHED_ROWS_H_
#define KINGLET_RUNTIME_CACHED_ROWS_H_

#include <cstdint>
#include <variant>
#include <vector>

#include "kernels/plan.h"
#include "kernels/row_cache.h"

namespace kinglet {

class CachedRows {
 public:
  // The empty caches of a new stream. REQUIRES: a plan of Lower.
  explicit CachedRows(const Plan& plan)
      : CachedRows(std::get<EmbedRow>(plan.nodes[EmbeddingNode(plan)].op)) {}
  // The empty caches of the embedding `embedding`, such as an encoder's.
  explicit CachedRows(const EmbedRow& embedding) {
    for (const DefineRows& unit : embedding.units) {
      const EmbeddingBin& last = embedding.BinsOf(unit).back();
      // Words that the vocabulary lacks have numbers above all ids.
      const uint32_t end = last.spelling ? UINT32_MAX : last.first + last.size;
      units_.push_back({embedding.BinsOf(unit).front().first, end, unit.cache,
                        std::vector<uint32_t>(unit.cache.index_size())});
    }
  }

  bool empty() const { return units_.empty(); }

  // Records that the stream processes the token. Returns whether the token's row is in a cache;
  // always false for a token without a unit.
  bool Step(uint32_t token) {
    for (Unit& unit : units_) {
      if (token < unit.first || token >= unit.end) continue;
      RowCache cache(unit.shape, unit.index.data());
      if (cache.Find(token)) return true;
      cache.Take(token);
      return false;
    }
    return false;
  }

 private:
  struct Unit {
    uint32_t first, end;  // tokens
    RowCacheShape shape;
    std::vector<uint32_t> index;
  };
  std::vector<Unit> units_;
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_CACHED_ROWS_H_

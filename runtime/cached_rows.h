// Which rows of a DeFINE unit a stream's row cache contains, computed from the stream's tokens
// alone. The cost of a token depends on the cache (runtime/accounting).
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
  // The empty cache of a new stream. REQUIRES: a plan of Lower.
  explicit CachedRows(const Plan& plan)
      : CachedRows(std::get<EmbedRow>(plan.nodes[EmbeddingNode(plan)].op)) {}
  // The empty cache of the embedding `embedding`, such as an encoder's.
  explicit CachedRows(const EmbedRow& embedding) {
    if (!embedding.define) return;
    shape_ = embedding.define->cache;
    index_.resize(shape_.index_size());
  }

  // Records that the stream processes the token. Returns whether the token's row is in the cache;
  // always false in a plan without a row cache.
  bool Step(uint32_t token) {
    if (index_.empty()) return false;
    RowCache cache(shape_, index_.data());
    if (cache.Find(token)) return true;
    cache.Take(token);
    return false;
  }

 private:
  RowCacheShape shape_;
  std::vector<uint32_t> index_;  // empty if the plan has no cache
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_CACHED_ROWS_H_

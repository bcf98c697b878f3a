// Which rows of a DeFINE unit a stream's cache holds, from the stream's tokens alone: what a token
// costs depends on it (runtime/accounting).
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
  // The same for an encoder's embedding.
  explicit CachedRows(const EmbedRow& embedding) {
    if (!embedding.define) return;
    shape_ = embedding.define->cache;
    words_.resize(shape_.memory_words());
  }

  // The stream processes the token. Returns whether it takes the row from the cache; false in a
  // plan without one.
  bool Step(uint32_t token) {
    if (words_.empty()) return false;
    RowCache cache(shape_, words_.data());
    if (cache.Find(token)) return true;
    cache.Take(token);
    return false;
  }

 private:
  RowCacheShape shape_;
  std::vector<uint32_t> words_;  // none: the plan has no cache
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_CACHED_ROWS_H_

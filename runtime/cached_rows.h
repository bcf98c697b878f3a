// What a stream's cache of computed rows holds, followed from its tokens alone.
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
  // Of a stream at its creation: empty. REQUIRES: a plan of Lower.
  explicit CachedRows(const Plan& plan)
      : CachedRows(std::get<EmbedRow>(plan.steps[EmbeddingStep(plan)].op)) {}
  // Of an encoder's embedding.
  explicit CachedRows(const EmbedRow& embedding) {
    if (!embedding.define) return;
    shape_ = embedding.define->cache;
    words_.resize(shape_.memory_words());
  }

  // The stream processes the token: whether it takes its row from the cache. Never where the plan
  // has no cache.
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

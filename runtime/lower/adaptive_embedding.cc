#include <algorithm>
#include <utility>

#include "runtime/lower/blocks.h"

namespace kinglet {

void LowerEmbedding(const AdaptiveEmbedding& block, BufferId residual, PlanBuilder& builder) {
  EmbedRow row{block.bins, block.scale, residual};
  if (const auto& kept = block.define) {
    const auto cache = RowCacheShape::Of(kept->cache_rows, builder.plan().vocabulary_size);
    row.define = DefineRows{kept->unit,
                            kept->tensors,
                            cache,
                            builder.Reals("define.work", DefineWork(kept->unit).total),
                            builder.Reals("define.rows", cache.rows() * block.width),
                            builder.ScratchWords("define.words", cache.memory_words())};
  }
  builder.AddStep(block.name, std::move(row));
}

}  // namespace kinglet

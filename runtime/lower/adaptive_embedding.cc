#include <algorithm>
#include <utility>

#include "runtime/lower/blocks.h"

namespace kinglet {

void LowerEmbedding(const AdaptiveEmbedding& block, BufferId residual, PlanBuilder& builder) {
  EmbedRow row{block.bins, block.scale, residual};
  if (const auto& kept = block.define) {
    const uint32_t tokens = block.bins.back().first + block.bins.back().size;
    const auto cache = RowCacheShape::Of(kept->cache_rows, tokens);
    row.define = DefineRows{kept->unit,
                            kept->tensors,
                            cache,
                            builder.Floats(block.name + ".unit", DefineWork(kept->unit).total),
                            builder.Floats(block.name + ".rows", cache.rows() * block.width),
                            builder.ScratchUint32s(block.name + ".row_index", cache.index_size())};
  }
  builder.AddNode(block.name, std::move(row));
}

}  // namespace kinglet

#include <string>
#include <utility>

#include "runtime/lower/blocks.h"

namespace kinglet {

void LowerEmbedding(const AdaptiveEmbedding& block, BufferId residual, PlanBuilder& builder) {
  EmbedRow row{block.bins, block.scale, residual};
  for (const KeptDefineUnit& kept : block.units) {
    uint32_t tokens = 0;
    for (uint32_t i = 0; i < kept.bin_count; ++i) tokens += block.bins[kept.first_bin + i].size;
    const auto cache = RowCacheShape::Of(kept.cache_rows, tokens);
    const std::string name = block.name + UnitName(block.units.size(), row.units.size());
    row.units.push_back({kept.first_bin, kept.bin_count, kept.unit, kept.tensors, cache,
                         builder.Floats(name, DefineWork(kept.unit).total),
                         builder.Floats(name + ".rows", cache.rows() * block.width),
                         builder.ScratchUint32s(name + ".row_index", cache.index_size())});
    if (const EmbeddingBin* const spelt = row.SpellingOf(row.units.back())) {
      row.units.back().spelling =
          builder.Floats(name + ".spelling", SpellingWork(*spelt, builder.weights()).total);
    }
  }
  builder.AddNode(block.name, std::move(row));
}

}  // namespace kinglet

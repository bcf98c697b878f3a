#include "runtime/lower/blocks.h"

namespace kinglet {

void LowerEmbedding(const AdaptiveEmbedding& block, BufferId residual, PlanBuilder& builder) {
  builder.AddStep(block.name, EmbedRow{block.bins, block.scale, residual});
}

}  // namespace kinglet

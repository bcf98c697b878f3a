// One function per kind of block, each in a file of its own: what its steps are. The buffers passed
// in and out are the seams between blocks.
#ifndef KINGLET_RUNTIME_LOWER_BLOCKS_H_
#define KINGLET_RUNTIME_LOWER_BLOCKS_H_

#include "format/blocks.h"
#include "runtime/lower/builder.h"

namespace kinglet {

// token -> residual stream [width] of reals.
void LowerEmbedding(const AdaptiveEmbedding& block, BufferId residual, PlanBuilder& builder);

// Updates the residual stream in place, layer by layer. Buffers carry the names
// "layers.<i>.<what>".
void LowerDecoder(const MicronetDecoder& block, BufferId residual, PlanBuilder& builder);

// hidden (reals or codes) -> one ClusterPlan per cluster, appended to the plan.
void LowerSoftmax(const AdaptiveSoftmax& block, BufferId hidden, PlanBuilder& builder);

// The first step of a token: remember the previous step's hidden state with this token.
struct CacheBuffers {
  BufferId keys, words;
};
CacheBuffers LowerCacheAppend(const NeuralCache& block, BufferId hidden, PlanBuilder& builder);
// The query: weights of the stored pairs. Sets plan.cache.
void LowerCacheQuery(const NeuralCache& block, BufferId hidden, const CacheBuffers& buffers,
                     PlanBuilder& builder);

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_LOWER_BLOCKS_H_

#include "runtime/lower/blocks.h"

namespace kinglet {

CacheBuffers LowerCacheAppend(const NeuralCache& block, BufferId hidden, PlanBuilder& builder) {
  const uint64_t width = builder.plan().buffer(hidden).count;
  const Ring pairs{.slots = block.capacity, .lag = 1};
  const CacheBuffers buffers{builder.RowRingLike("cache.keys", width, pairs, hidden),
                             builder.Uint32s("cache.tokens", pairs)};
  builder.AddNode("cache.append",
                  CacheAppend{hidden, buffers.keys, buffers.tokens, block.capacity});
  return buffers;
}

void LowerCacheQuery(const NeuralCache& block, BufferId hidden, const CacheBuffers& buffers,
                     PlanBuilder& builder) {
  CachePlan cache{};
  cache.capacity = block.capacity;
  cache.lambda = block.lambda;
  cache.tokens = buffers.tokens;
  cache.weights = builder.Floats("cache.weights", block.capacity);
  cache.total = builder.Floats("cache.total", 1);
  cache.nodes.begin = builder.node_count();
  cache.first_position =
      block.start == CacheStart::kPastCapacity ? uint64_t{block.capacity} + 1 : 1;
  builder.AddNode("cache.weights", CacheWeights{hidden, buffers.keys, block.capacity, block.theta,
                                                cache.weights, cache.total, cache.first_position});
  cache.nodes.end = builder.node_count();
  builder.plan().cache = cache;
}

}  // namespace kinglet

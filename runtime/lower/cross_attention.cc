#include <string>

#include "runtime/lower/blocks.h"

namespace kinglet {

BufferId LowerCrossAttention(const TransformerDecoder& block, const CrossAttention& cross,
                             const SourceMemory& memory, const std::string& name, BufferId input,
                             PlanBuilder& builder) {
  using Q = CrossAttentionQuantisers;
  const uint64_t heads = block.heads;
  const BufferId floats = builder.Floats(name + ".query", heads * block.key_size);
  builder.AddProduct(name + ".query", MatVec{cross.query_weight, cross.query_bias, input, floats});
  const BufferId query = builder.QuantisedAs(name + ".query", floats, At(cross, &Q::query));
  const BufferId attended = LowerSourceAttention(block, memory, name, query, At(cross, &Q::weights),
                                                 At(cross, &Q::attended), builder);
  const BufferId out = builder.Floats(name + ".out", block.width);
  builder.AddProduct(name + ".out", MatVec{cross.out_weight, cross.out_bias, attended, out});
  return out;
}

BufferId LowerSourceAttention(const TransformerDecoder& block, const SourceMemory& memory,
                              const std::string& name, BufferId query,
                              const ActivationQuantiser* weights_quantiser,
                              const ActivationQuantiser* attended_quantiser, PlanBuilder& builder) {
  const uint64_t heads = block.heads;
  const BufferId weights = builder.Floats(name + ".weights", heads * memory.window);
  const BufferId attended = builder.Floats(name + ".attended", heads * block.value_size);
  builder.AddNode(
      name + ".attention",
      SourceAttention{query, memory.rows, block.heads, block.key_size, block.value_size,
                      memory.window, builder.Applied(weights_quantiser), weights, attended});
  builder.Note(weights_quantiser, weights, memory.window);
  return builder.QuantisedAs(name + ".attended", attended, attended_quantiser);
}

}  // namespace kinglet

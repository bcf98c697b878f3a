#include <string>

#include "runtime/lower/blocks.h"

namespace kinglet {

// x + out(attention(query(norm(x)), memory))
void LowerCrossAttention(const TransformerDecoder& block, const CrossAttention& cross,
                         const SourceMemory& memory, const std::string& name, BufferId residual,
                         PlanBuilder& builder) {
  const uint64_t heads = block.heads;
  const BufferId norm = builder.Reals(name + ".norm", block.width);
  builder.AddStep(name + ".norm",
                  LayerNorm{residual, cross.norm_gain, cross.norm_bias, block.epsilon, norm});
  const BufferId query = builder.Reals(name + ".query", heads * block.key_size);
  builder.AddProduct(name + ".query", MatVec{cross.query_weight, cross.query_bias, norm, query});
  const BufferId attended = LowerSourceAttention(block, memory, name, query, builder);
  const BufferId out = builder.Reals(name + ".out", block.width);
  builder.AddProduct(name + ".out", MatVec{cross.out_weight, cross.out_bias, attended, out});
  builder.AddStep(name + ".residual", Add{out, residual});
}

BufferId LowerSourceAttention(const TransformerDecoder& block, const SourceMemory& memory,
                              const std::string& name, BufferId query, PlanBuilder& builder) {
  const uint64_t heads = block.heads;
  const BufferId weights = builder.Reals(name + ".weights", heads * memory.window);
  const BufferId attended = builder.Reals(name + ".attended", heads * block.value_size);
  builder.AddStep(name + ".attention",
                  SourceAttention{query, memory.rows, block.heads, block.key_size, block.value_size,
                                  memory.window, weights, attended});
  return attended;
}

}  // namespace kinglet

#include <optional>
#include <string>

#include "runtime/lower/blocks.h"

namespace kinglet {
namespace {

constexpr const char* kAttentionName = "attention";

// The query as the scores take it: the decoder's output, or a product with it.
BufferId QueryOf(const GlobalAttention& attention, BufferId decoded, uint64_t width,
                 PlanBuilder& builder) {
  if (!attention.query_weight) return decoded;
  const std::string name = std::string(kAttentionName) + ".query";
  const BufferId query = builder.Floats(name, width);
  builder.AddProduct(name, MatVec{*attention.query_weight, attention.query_bias, decoded, query});
  if (attention.score == AttentionScore::kMlp) return query;
  return builder.QuantisedAs(name, query, At(attention.query));
}

}  // namespace

void LowerGlobalAttention(const GlobalAttention& attention, const SourceMemory& memory,
                          const QuantisedVector& query, const QuantisedVector& hidden,
                          PlanBuilder& builder) {
  const std::string name = kAttentionName;
  const bool additive = attention.score == AttentionScore::kMlp;
  const uint64_t width = builder.plan().buffer(query.floats).count;
  const auto n = static_cast<uint32_t>(width);
  const BufferId scored = QueryOf(attention, query.codes, width, builder);
  const BufferId weights = builder.Floats(name + ".weights", memory.window);
  const BufferId attended = builder.Floats(name + ".attended", width);
  SourceAttention attend{
      scored,  memory.rows, 1, n, n, memory.window, builder.Applied(At(attention.weights)),
      weights, attended};
  attend.score = additive ? SourceScore::kAdditive : SourceScore::kDot;
  attend.score_weight = attention.score_weight;
  builder.AddNode(name, attend);
  if (!additive) builder.Note(At(attention.weights), weights, memory.window);
  const BufferId joined = builder.Floats(name + ".joined", 2 * width);
  builder.AddNode(name + ".join", Join{{{attended, 0, width}, {query.floats, 0, width}}, joined});
  const BufferId input = builder.QuantisedAs(name + ".joined", joined, At(attention.joined));
  builder.AddProduct(name + ".out",
                     MatVec{attention.out_weight, attention.out_bias, input, hidden.floats});
  if (!additive) LowerActivation(Activation::kTanh, name + ".out", hidden.floats, builder);
  LowerQuantised(name + ".out.quantise", hidden, builder);
}

}  // namespace kinglet

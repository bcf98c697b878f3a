#include <optional>
#include <string>
#include <vector>

#include "runtime/lower/blocks.h"
#include "runtime/lower/encoder_stack.h"

namespace kinglet {
namespace {

// Computes what the cross-attention of each layer of the decoder reads.
void LowerMemories(const TransformerDecoder& decoder, std::span<const SourceMemory> memories,
                   BufferId encoded, PlanBuilder& builder) {
  for (size_t i = 0; i < decoder.layers.size(); ++i) {
    const CrossAttention& cross = *decoder.layers[i].cross_attention;
    const std::string name = "layers." + std::to_string(i) + ".source";
    const uint64_t size = uint64_t{decoder.heads} * (decoder.key_size + decoder.value_size);
    const BufferId row = builder.Floats(name + ".key_value", size);
    builder.AddProduct(name + ".key_value",
                       MatVec{cross.key_value_weight, cross.key_value_bias, encoded, row});
    const BufferId stored = builder.QuantisedAs(name + ".key_value", row,
                                                At(cross, &CrossAttentionQuantisers::key_value));
    builder.AddNode(name + ".key_value.store", StoreRow{stored, memories[i].rows});
  }
}

}  // namespace

std::vector<SourceMemory> MakeSourceMemories(const TransformerDecoder& decoder,
                                             const TransformerEncoder& encoder,
                                             PlanBuilder& builder) {
  const uint64_t size = uint64_t{decoder.heads} * (decoder.key_size + decoder.value_size);
  const uint32_t window = encoder.stack.window;
  std::vector<SourceMemory> memories;
  for (size_t i = 0; i < decoder.layers.size(); ++i) {
    memories.push_back(
        {builder.SourceRows("layers." + std::to_string(i) + ".source", size, window,
                            builder.Applied(At(*decoder.layers[i].cross_attention,
                                               &CrossAttentionQuantisers::key_value))),
         window});
  }
  return memories;
}

void LowerEncoder(const TransformerEncoder& block, const TransformerDecoder& decoder,
                  std::span<const SourceMemory> memories, PlanBuilder& builder) {
  builder.BeginSource();
  const TransformerDecoder& stack = block.stack;
  EncoderStack lowering(stack, "encoder", builder);
  EncoderPlan plan{{}, block.vocabulary_size, stack.window};
  lowering.Sweep(plan, [&] {
    AdaptiveEmbedding embedding = block.embedding;
    embedding.name = "encoder.embedding";  // in the file it is a part of the encoder
    LowerEmbedding(embedding, lowering.residual(), builder);
    LowerPositions(stack, "encoder.positions", lowering.residual(), builder);
    lowering.BeginLayers();
  });
  lowering.LowerLayers(plan);
  lowering.Sweep(plan, [&] {
    lowering.EndLayers();
    lowering.AddNorm("encoder.final_norm", *stack.final_norm_gain, *stack.final_norm_bias);
    LowerMemories(decoder, memories,
                  builder.QuantisedAs("encoder.final_norm", lowering.norm(), At(stack.output)),
                  builder);
  });
  builder.plan().encoder = plan;
  builder.EndSource();
}

}  // namespace kinglet

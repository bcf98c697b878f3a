#include <optional>
#include <string>
#include <vector>

#include "runtime/lower/blocks.h"

namespace kinglet {
namespace {

// The attention of layer l needs the keys and values of all source tokens in that layer. So the
// encoder makes sweeps over the source: sweep l runs the rest of layer l - 1 and computes the
// attention queries, keys and values of layer l. Between sweeps, buffers contain two rows for each
// token: its residual stream, and its attention queries, keys and values.
class EncoderLowering {
 public:
  EncoderLowering(const TransformerEncoder& block, PlanBuilder& builder)
      : block_(block),
        stack_(block.stack),
        builder_(builder),
        qkv_size_(uint64_t{stack_.heads} * (2 * stack_.key_size + stack_.value_size)),
        residual_(builder.Floats("encoder.hidden", stack_.width)),
        norm_(builder.Floats("encoder.norm", stack_.width)),
        qkv_(builder.Floats("encoder.qkv", qkv_size_)),
        residuals_(builder.OfSource(
            builder.Floats("encoder.hidden.rows", uint64_t{stack_.width} * stack_.window))),
        qkvs_(MakeQkvRows(stack_, "encoder.qkv.rows.", builder)) {}

  EncoderPlan Lower(const TransformerDecoder& decoder, std::span<const SourceMemory> memories) {
    EncoderPlan plan{{}, block_.vocabulary_size, stack_.window};
    const auto add_sweep = [&](const auto& lower) {
      const size_t begin = builder_.node_count();
      lower();
      plan.sweeps.push_back({{begin, builder_.node_count()}, SourceOrder::kForward});
    };
    add_sweep([&] {
      AdaptiveEmbedding embedding = block_.embedding;
      embedding.name = "encoder.embedding";  // in the file it is a part of the encoder
      LowerEmbedding(embedding, residual_, builder_);
      LowerPositions(stack_, "encoder.positions", residual_, builder_);
      LowerQkv(0);
    });
    for (size_t i = 0; i + 1 < stack_.layers.size(); ++i) {
      add_sweep([&] {
        LowerRestOfLayer(i);
        LowerQkv(i + 1);
      });
    }
    add_sweep([&] {
      LowerRestOfLayer(stack_.layers.size() - 1);
      LowerMemories(decoder, memories);
    });
    return plan;
  }

 private:
  using Q = TransformerLayerQuantisers;

  static std::string LayerName(size_t index) { return "encoder.layers." + std::to_string(index); }
  void AddNorm(const std::string& name, TensorId gain, TensorId bias) {
    builder_.AddNode(name, LayerNorm{residual_, gain, bias, stack_.epsilon, norm_});
  }

  // Computes and stores the attention queries, keys and values of a layer, and stores the residual
  // stream, for the next sweep.
  void LowerQkv(size_t index) {
    const TransformerLayer& layer = stack_.layers[index];
    const std::string name = LayerName(index);
    builder_.AddNode(name + ".hidden.store", StoreRow{residual_, residuals_});
    AddNorm(name + ".norm1", *layer.attention_norm_gain, *layer.attention_norm_bias);
    const BufferId input =
        builder_.QuantisedAs(name + ".norm1", norm_, At(layer, &Q::attention_input));
    builder_.AddProduct(name + ".qkv", MatVec{layer.qkv_weight, layer.qkv_bias, input, qkv_});
    layer_qkv_ = builder_.QuantisedAs(name + ".qkv", qkv_, At(layer, &Q::qkv));
    builder_.AddNode(name + ".qkv.store", StoreRow{layer_qkv_, qkvs_[index]});
  }

  void LowerRestOfLayer(size_t index) {
    const TransformerLayer& layer = stack_.layers[index];
    const std::string name = LayerName(index);
    builder_.BeginLayer();
    builder_.AddNode(name + ".hidden.load", LoadRow{residuals_, residual_});
    builder_.AddNode(name + ".qkv.load", LoadRow{qkvs_[index], layer_qkv_});
    const BufferId attended =
        LowerSourceAttention(stack_, {qkvs_[index], stack_.window}, name, layer_qkv_,
                             At(layer, &Q::weights), At(layer, &Q::attended), builder_);
    const BufferId out = builder_.Floats(name + ".out", stack_.width);
    builder_.AddProduct(name + ".out", MatVec{layer.out_weight, layer.out_bias, attended, out});
    builder_.AddNode(name + ".residual1", Add{out, residual_});
    AddNorm(name + ".norm2", *layer.inner_norm_gain, *layer.inner_norm_bias);
    const BufferId input = builder_.QuantisedAs(name + ".norm2", norm_, At(layer, &Q::inner_input));
    builder_.AddNode(name + ".residual2",
                     Add{LowerFeedForward(stack_, layer, name, input, builder_), residual_});
    builder_.EndLayer();
  }

  // Computes the rows that the cross-attention of each layer of the decoder reads.
  void LowerMemories(const TransformerDecoder& decoder, std::span<const SourceMemory> memories) {
    AddNorm("encoder.final_norm", *stack_.final_norm_gain, *stack_.final_norm_bias);
    const BufferId encoded = builder_.QuantisedAs("encoder.final_norm", norm_, stack_.output);
    for (size_t i = 0; i < decoder.layers.size(); ++i) {
      const CrossAttention& cross = *decoder.layers[i].cross_attention;
      const std::string name = "layers." + std::to_string(i) + ".source";
      const uint64_t size = uint64_t{decoder.heads} * (decoder.key_size + decoder.value_size);
      const BufferId row = builder_.Floats(name + ".key_value", size);
      builder_.AddProduct(name + ".key_value",
                          MatVec{cross.key_value_weight, cross.key_value_bias, encoded, row});
      const BufferId stored = builder_.QuantisedAs(name + ".key_value", row,
                                                   At(cross, &CrossAttentionQuantisers::key_value));
      builder_.AddNode(name + ".key_value.store", StoreRow{stored, memories[i].rows});
    }
  }

  const TransformerEncoder& block_;
  const TransformerDecoder& stack_;
  PlanBuilder& builder_;
  const uint64_t qkv_size_;  // of one token
  const BufferId residual_, norm_, qkv_;
  const BufferId residuals_;          // [window, width]
  const std::vector<BufferId> qkvs_;  // [window, qkv_size_], by layer
  BufferId layer_qkv_{};              // [qkv_size_], of the layer whose sweep is next
};

}  // namespace

std::vector<BufferId> MakeQkvRows(const TransformerDecoder& stack, const std::string& name,
                                  PlanBuilder& builder) {
  const uint64_t size = uint64_t{stack.heads} * (2 * stack.key_size + stack.value_size);
  std::vector<BufferId> rows;
  for (size_t i = 0; i < stack.layers.size(); ++i) {
    const auto quantiser = At(stack.layers[i], &TransformerLayerQuantisers::qkv);
    rows.push_back(i >= 2 && !quantiser
                       ? rows[i - 2]
                       : builder.OfSource(builder.Vector(name + std::to_string(i),
                                                         size * stack.window, quantiser)));
  }
  return rows;
}

std::vector<SourceMemory> MakeSourceMemories(const TransformerDecoder& decoder,
                                             const TransformerEncoder& encoder,
                                             PlanBuilder& builder) {
  const uint64_t size = uint64_t{decoder.heads} * (decoder.key_size + decoder.value_size);
  const uint32_t window = encoder.stack.window;
  std::vector<SourceMemory> memories;
  for (size_t i = 0; i < decoder.layers.size(); ++i) {
    memories.push_back({builder.SourceRows("layers." + std::to_string(i) + ".source", size, window,
                                           At(*decoder.layers[i].cross_attention,
                                              &CrossAttentionQuantisers::key_value)),
                        window});
  }
  return memories;
}

void LowerEncoder(const TransformerEncoder& block, const TransformerDecoder& decoder,
                  std::span<const SourceMemory> memories, PlanBuilder& builder) {
  builder.BeginSource();
  builder.plan().encoder = EncoderLowering(block, builder).Lower(decoder, memories);
  builder.EndSource();
}

}  // namespace kinglet

#include <string>
#include <variant>

#include "format/overloaded.h"
#include "runtime/lower/blocks.h"

namespace kinglet {
namespace {

class DecoderLowering {
 public:
  DecoderLowering(const TransformerDecoder& block, BufferId residual,
                  std::span<const SourceMemory> memories, PlanBuilder& builder)
      : block_(block), residual_(residual), memories_(memories), builder_(builder) {}

  void Lower() {
    LowerPositions(block_, "positions", residual_, builder_);
    if (block_.masked_token) {
      masked_ = MaskedToken{builder_.Uint32s("tokens", Ring{.slots = block_.window}),
                            *block_.masked_token};
    }
    for (size_t i = 0; i < block_.layers.size(); ++i) {
      const TransformerLayer& layer = block_.layers[i];
      name_ = "layers." + std::to_string(i);
      LowerSublayer("1", layer.attention_norm_gain, layer.attention_norm_bias,
                    At(layer, &Q::attention_input),
                    [&](BufferId input) { return LowerAttention(layer, input); });
      if (const auto& cross = layer.cross_attention) {
        LowerSublayer("_source", cross->norm_gain, cross->norm_bias,
                      At(*cross, &CrossAttentionQuantisers::input), [&](BufferId input) {
                        return LowerCrossAttention(block_, *cross, memories_[i], name_ + ".source",
                                                   input, builder_);
                      });
      }
      LowerSublayer(
          "2", layer.inner_norm_gain, layer.inner_norm_bias, At(layer, &Q::inner_input),
          [&](BufferId input) { return LowerFeedForward(block_, layer, name_, input, builder_); });
      if (layer.end_epsilon) {
        builder_.AddNode(name_ + ".norm",
                         RootMeanSquareNorm{residual_, *layer.end_epsilon, residual_});
      }
    }
    if (!block_.final_norm_gain) return;
    builder_.AddNode("final_norm",
                     Norm(*block_.final_norm_gain, *block_.final_norm_bias, residual_, residual_));
  }

 private:
  using Q = TransformerLayerQuantisers;

  LayerNorm Norm(TensorId gain, TensorId bias, BufferId x, BufferId y) const {
    return {x, gain, bias, block_.epsilon, y};
  }

  // x + f(norm(x)), norm(x + f(x)) or x + f(x). `function` takes f's input and returns its output.
  template <class Function>
  void LowerSublayer(const std::string& number, std::optional<TensorId> gain,
                     std::optional<TensorId> bias, const ActivationQuantiser* quantiser,
                     const Function& function) {
    const std::string norm_name = name_ + ".norm" + number;
    BufferId input = residual_;
    if (block_.norm_order == NormOrder::kPre) {
      input = builder_.Floats(norm_name, block_.width);
      builder_.AddNode(norm_name, Norm(*gain, *bias, residual_, input));
      input = builder_.Quantised(norm_name + ".quantise", input, quantiser);
    } else {
      input = builder_.QuantisedAs(name_ + ".input" + number, residual_, quantiser);
    }
    builder_.AddNode(name_ + ".residual" + number, Add{function(input), residual_});
    if (block_.norm_order == NormOrder::kPost) {
      builder_.AddNode(norm_name, Norm(*gain, *bias, residual_, residual_));
    }
  }

  BufferId LowerAttention(const TransformerLayer& layer, BufferId input) {
    const uint64_t heads = block_.heads;
    const uint64_t per_head = uint64_t{2} * block_.key_size + block_.value_size;
    const BufferId floats = builder_.Floats(name_ + ".qkv", heads * per_head);
    builder_.AddProduct(name_ + ".qkv", MatVec{layer.qkv_weight, layer.qkv_bias, input, floats});
    if (layer.content_bias) {
      builder_.AddNode(name_ + ".query_bias", AddQueryBias{*layer.content_bias, floats});
    }
    const BufferId qkv = builder_.Quantised(name_ + ".qkv.quantise", floats, At(layer, &Q::qkv));

    const Ring window{.slots = block_.window};
    WindowAttention attention{};
    attention.qkv = qkv;
    // Other positions' kernels read 16-bit codes, as do those of a start row. Heads are parts of
    // rows.
    const bool as_rows = std::holds_alternative<SlotPositions>(block_.positions) && !layer.start;
    const auto ring = [&](const char* name, uint64_t size) {
      const uint64_t row = heads * size;
      return as_rows && size % 8 == 0 ? builder_.RowRingLike(name_ + name, row, window, qkv)
                                      : builder_.RingLike(name_ + name, row, window, qkv);
    };
    attention.keys = ring(".keys", block_.key_size);
    attention.values = ring(".values", block_.value_size);
    std::visit(Overloaded{[&](const SlotPositions&) {
                            attention.positions = SlotColumns{*layer.positions};
                          },
                          [&](const RelativeSinusoids& relative) {
                            attention.positions = RelativeRows{
                                *layer.positions,     relative.frequencies, *layer.content_bias,
                                *layer.position_bias, relative.clamp,       relative.rounded};
                          },
                          // LowerPositions added them to the embedding.
                          []<OneOf<AbsoluteSinusoids, PositionTable> Added>(const Added&) {},
                          [](const NoPositions&) {}},
               block_.positions);
    attention.heads = block_.heads;
    attention.key_size = block_.key_size;
    attention.value_size = block_.value_size;
    attention.window = block_.window;
    attention.start = block_.start;
    attention.start_row = layer.start;
    attention.restarts = IsAbsolute(block_.positions);
    attention.masked = masked_;
    attention.weights_quantiser = builder_.Applied(At(layer, &Q::weights));
    attention.weights = builder_.Floats(name_ + ".attention_weights", heads * block_.window);
    attention.out = builder_.Floats(name_ + ".attended", heads * block_.value_size);
    builder_.AddNode(name_ + ".attention", attention);
    builder_.Note(At(layer, &Q::weights), attention.weights, block_.window);
    const BufferId attended =
        builder_.Quantised(name_ + ".attention.quantise", attention.out, At(layer, &Q::attended));

    const BufferId out = builder_.Floats(name_ + ".out", block_.width);
    builder_.AddProduct(name_ + ".out", MatVec{layer.out_weight, layer.out_bias, attended, out});
    return out;
  }

  const TransformerDecoder& block_;
  BufferId residual_;
  std::span<const SourceMemory> memories_;  // by layer
  PlanBuilder& builder_;
  std::optional<MaskedToken> masked_;
  std::string name_;  // of the layer
};

}  // namespace

void LowerPositions(const TransformerDecoder& block, const std::string& name, BufferId residual,
                    PlanBuilder& builder) {
  std::visit(
      Overloaded{[&](const AbsoluteSinusoids& sinusoids) {
                   builder.AddNode(name, AddSinusoids{sinusoids.frequencies, sinusoids.first,
                                                      block.window, residual});
                 },
                 [&](const PositionTable& table) {
                   builder.AddNode(name, AddPositionRow{table.table, block.window, residual});
                 },
                 // Attention has these.
                 []<OneOf<SlotPositions, RelativeSinusoids> Scored>(const Scored&) {},
                 [](const NoPositions&) {}},
      block.positions);
}

BufferId LowerFeedForward(const TransformerDecoder& block, const TransformerLayer& layer,
                          const std::string& name, BufferId input, PlanBuilder& builder) {
  using Q = TransformerLayerQuantisers;
  const BufferId inner =
      builder.Floats(name + ".inner", Rows(builder.plan().weights[layer.inner_weight].shape));
  MatVec fc0{layer.inner_weight, layer.inner_bias, input, inner};
  fc0.relu = block.activation == Activation::kRelu;
  builder.AddProduct(name + ".fc0", fc0);
  if (!fc0.relu) LowerActivation(block.activation, name + ".fc0", inner, builder);
  const BufferId codes = builder.Quantised(name + ".fc0.quantise", inner, At(layer, &Q::inner));
  const BufferId outer = builder.Floats(name + ".outer", block.width);
  builder.AddProduct(name + ".fc3", MatVec{layer.outer_weight, layer.outer_bias, codes, outer});
  return builder.Quantised(name + ".fc3.quantise", outer, At(layer, &Q::outer));
}

void LowerDecoder(const TransformerDecoder& block, BufferId residual,
                  std::span<const SourceMemory> memories, PlanBuilder& builder) {
  DecoderLowering(block, residual, memories, builder).Lower();
}

}  // namespace kinglet

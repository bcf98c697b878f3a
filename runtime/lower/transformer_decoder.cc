#include <string>

#include "runtime/lower/blocks.h"

namespace kinglet {
namespace {

// The quantiser a layer has at one point, if its layers are quantised at all.
template <class Member>
std::optional<ActivationQuantiser> At(const TransformerLayer& layer, Member member) {
  if (!layer.quantisers) return std::nullopt;
  return (*layer.quantisers).*member;
}

// x + out(attention(qkv(norm1(x))))
void LowerAttention(const TransformerDecoder& block, const TransformerLayer& layer,
                    const std::string& name, BufferId residual, PlanBuilder& builder) {
  using Q = TransformerLayerQuantisers;
  const uint64_t per_head = uint64_t{2} * block.key_size + block.value_size;
  const BufferId norm = builder.Reals(name + ".norm1", block.width);
  builder.AddStep(name + ".norm1", LayerNorm{residual, layer.attention_norm_gain,
                                             layer.attention_norm_bias, block.epsilon, norm});
  const BufferId qkv_input =
      builder.Quantised(name + ".norm1.quantise", norm, At(layer, &Q::attention_input));

  const BufferId qkv_reals = builder.Reals(name + ".qkv", block.heads * per_head);
  builder.AddProduct(name + ".qkv", MatVec{layer.qkv_weight, layer.qkv_bias, qkv_input, qkv_reals});
  const BufferId qkv = builder.Quantised(name + ".qkv.quantise", qkv_reals, At(layer, &Q::qkv));

  const uint64_t heads = block.heads;
  const Ring window{.slots = block.window};
  const BufferId keys = builder.RingLike(name + ".keys", heads * block.key_size, window, qkv);
  const BufferId values = builder.RingLike(name + ".values", heads * block.value_size, window, qkv);
  const BufferId weights = builder.Reals(name + ".attention_weights", heads * block.window);
  const BufferId attended =
      builder.Reals(name + ".attended", uint64_t{block.heads} * block.value_size);
  builder.AddStep(name + ".attention",
                  WindowAttention{qkv, keys, values, *layer.positions, block.heads, block.key_size,
                                  block.value_size, block.window, block.start,
                                  At(layer, &Q::weights), weights, attended});
  const BufferId out_input =
      builder.Quantised(name + ".attention.quantise", attended, At(layer, &Q::attended));

  const BufferId out = builder.Reals(name + ".out", block.width);
  builder.AddProduct(name + ".out", MatVec{layer.out_weight, layer.out_bias, out_input, out});
  builder.AddStep(name + ".residual1", Add{out, residual});
}

// x + fc3(relu(fc0(norm2(x))))
void LowerFeedForward(const TransformerDecoder& block, const TransformerLayer& layer,
                      const std::string& name, BufferId residual, PlanBuilder& builder) {
  using Q = TransformerLayerQuantisers;
  const BufferId norm = builder.Reals(name + ".norm2", block.width);
  builder.AddStep(name + ".norm2", LayerNorm{residual, layer.inner_norm_gain, layer.inner_norm_bias,
                                             block.epsilon, norm});
  const BufferId fc0_input =
      builder.Quantised(name + ".norm2.quantise", norm, At(layer, &Q::inner_input));

  const BufferId inner =
      builder.Reals(name + ".inner", Rows(builder.plan().weights[layer.inner_weight].shape));
  MatVec fc0{layer.inner_weight, layer.inner_bias, fc0_input, inner};
  fc0.rectify = true;
  builder.AddProduct(name + ".fc0", fc0);
  const BufferId fc3_input = builder.Quantised(name + ".fc0.quantise", inner, At(layer, &Q::inner));

  const BufferId outer_reals = builder.Reals(name + ".outer", block.width);
  builder.AddProduct(name + ".fc3",
                     MatVec{layer.outer_weight, layer.outer_bias, fc3_input, outer_reals});
  const BufferId outer =
      builder.Quantised(name + ".fc3.quantise", outer_reals, At(layer, &Q::outer));
  builder.AddStep(name + ".residual2", Add{outer, residual});
}

}  // namespace

void LowerDecoder(const TransformerDecoder& block, BufferId residual, PlanBuilder& builder) {
  for (size_t i = 0; i < block.layers.size(); ++i) {
    const std::string name = "layers." + std::to_string(i);
    LowerAttention(block, block.layers[i], name, residual, builder);
    LowerFeedForward(block, block.layers[i], name, residual, builder);
  }
}

}  // namespace kinglet

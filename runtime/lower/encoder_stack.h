// A stack of Transformer layers whose tokens see each other, before and after: the encoder of a
// translation model, and a masked model.
#ifndef KINGLET_RUNTIME_LOWER_ENCODER_STACK_H_
#define KINGLET_RUNTIME_LOWER_ENCODER_STACK_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/lower/blocks.h"

namespace kinglet {

// Attention in layer l needs the keys and values of all tokens in that layer. So a stack makes
// sweeps over the tokens: sweep l runs the rest of layer l - 1 and computes the attention queries,
// keys and values of layer l. Between sweeps, buffers hold two rows for each token: its residual
// stream, and its attention queries, keys and values. Buffers are named "<name>.<what>".
class EncoderStack {
 public:
  // REQUIRES: the stack's norm order is kPre or kPost; the stack outlives this.
  EncoderStack(const TransformerDecoder& stack, const std::string& name, PlanBuilder& builder)
      : stack_(stack),
        name_(name),
        builder_(builder),
        residual_(builder.Floats(name + ".hidden", stack.width)),
        // With post-norm, norms work in place.
        norm_(stack.norm_order == NormOrder::kPre ? builder.Floats(name + ".norm", stack.width)
                                                  : residual_),
        qkv_(builder.Floats(name + ".qkv", QkvSize())),
        residuals_(builder.OfSource(
            builder.Floats(name + ".hidden.rows", uint64_t{stack.width} * stack.window))),
        qkvs_(MakeQkvRows()) {}

  // [width] of floats: the residual stream of a token, and what a norm makes of it.
  BufferId residual() const { return residual_; }
  BufferId norm() const { return norm_; }
  // [window, width]: the residual streams of all tokens, between sweeps.
  BufferId residuals() const { return residuals_; }

  // Adds a sweep to the plan, with the nodes that `lower` adds.
  template <class Nodes>
  void Sweep(EncoderPlan& plan, const Nodes& lower, bool of_segments = false) {
    const size_t begin = builder_.node_count();
    lower();
    plan.sweeps.push_back({{begin, builder_.node_count()}, SourceOrder::kForward, of_segments});
  }
  // Adds the sweeps between the first one, which ends with BeginLayers, and the last one, which
  // begins with EndLayers.
  void LowerLayers(EncoderPlan& plan) {
    for (size_t i = 0; i + 1 < stack_.layers.size(); ++i) {
      Sweep(plan, [&] {
        LowerRestOfLayer(i);
        LowerQkv(i + 1);
      });
    }
  }
  void BeginLayers() { LowerQkv(0); }
  void EndLayers() { LowerRestOfLayer(stack_.layers.size() - 1); }

  void AddNorm(const std::string& name, TensorId gain, TensorId bias) {
    builder_.AddNode(name, LayerNorm{residual_, gain, bias, stack_.epsilon, norm_});
  }

 private:
  using Q = TransformerLayerQuantisers;

  uint64_t QkvSize() const {
    return uint64_t{stack_.heads} * (2 * stack_.key_size + stack_.value_size);
  }
  // Layers use two buffers in turn, except that codes have a buffer for each layer's quantiser.
  std::vector<BufferId> MakeQkvRows() {
    std::vector<BufferId> rows;
    for (size_t i = 0; i < stack_.layers.size(); ++i) {
      const auto quantiser = builder_.Applied(At(stack_.layers[i], &Q::qkv));
      const std::string name = name_ + ".qkv.rows." + std::to_string(i);
      rows.push_back(i >= 2 && !quantiser ? rows[i - 2]
                                          : builder_.OfSource(builder_.Vector(
                                                name, QkvSize() * stack_.window, quantiser)));
    }
    return rows;
  }

  bool pre() const { return stack_.norm_order == NormOrder::kPre; }
  std::string LayerName(size_t index) const { return name_ + ".layers." + std::to_string(index); }

  // The input of a layer's sublayer 1 (attention) or 2 (feed-forward).
  BufferId InputOf(const std::string& layer, const std::string& number,
                   const std::optional<TensorId>& gain, const std::optional<TensorId>& bias,
                   const ActivationQuantiser* quantiser) {
    if (pre()) AddNorm(layer + ".norm" + number, *gain, *bias);
    return builder_.QuantisedAs(layer + (pre() ? ".norm" : ".input") + number, norm_, quantiser);
  }
  // Adds the output of a sublayer to the residual stream.
  void AddOutput(const std::string& layer, const std::string& number, BufferId output,
                 const std::optional<TensorId>& gain, const std::optional<TensorId>& bias) {
    builder_.AddNode(layer + ".residual" + number, Add{output, residual_});
    if (!pre()) AddNorm(layer + ".norm" + number, *gain, *bias);
  }

  // Computes and stores a layer's attention queries, keys and values, and stores the residual
  // stream, for the next sweep.
  void LowerQkv(size_t index) {
    const TransformerLayer& layer = stack_.layers[index];
    const std::string name = LayerName(index);
    builder_.AddNode(name + ".hidden.store", StoreRow{residual_, residuals_});
    const BufferId input = InputOf(name, "1", layer.attention_norm_gain, layer.attention_norm_bias,
                                   At(layer, &Q::attention_input));
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
    AddOutput(name, "1", out, layer.attention_norm_gain, layer.attention_norm_bias);
    const BufferId input = InputOf(name, "2", layer.inner_norm_gain, layer.inner_norm_bias,
                                   At(layer, &Q::inner_input));
    AddOutput(name, "2", LowerFeedForward(stack_, layer, name, input, builder_),
              layer.inner_norm_gain, layer.inner_norm_bias);
    builder_.EndLayer();
  }

  const TransformerDecoder& stack_;
  const std::string name_;
  PlanBuilder& builder_;
  const BufferId residual_, norm_, qkv_;
  const BufferId residuals_;
  const std::vector<BufferId> qkvs_;  // [window, QkvSize()], by layer
  BufferId layer_qkv_{};              // [QkvSize()], of the layer whose sweep is next
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_LOWER_ENCODER_STACK_H_

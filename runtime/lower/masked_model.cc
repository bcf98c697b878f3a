#include <optional>
#include <string>
#include <vector>

#include "runtime/lower/blocks.h"

namespace kinglet {
namespace {

// As in the encoder of a translation (transformer_encoder.cc), attention needs the keys and values
// of all tokens, so the model makes sweeps over the text: sweep l runs the rest of layer l - 1 and
// computes the attention queries, keys and values of layer l. The words are embedded first, in a
// sweep of their own, because segments are looked up by other ids.
class MaskedLowering {
 public:
  MaskedLowering(const MaskedModel& block, PlanBuilder& builder)
      : block_(block),
        stack_(block.stack),
        builder_(builder),
        qkv_size_(uint64_t{stack_.heads} * (2 * stack_.key_size + stack_.value_size)),
        residual_(builder.Floats("text.hidden", stack_.width)),
        other_(builder.Floats("text.segment", stack_.width)),
        qkv_(builder.Floats("text.qkv", qkv_size_)),
        residuals_(builder.OfSource(
            builder.Floats("text.hidden.rows", uint64_t{stack_.width} * stack_.window))),
        qkvs_(MakeQkvRows(stack_, "text.qkv.rows.", builder)) {}

  EncoderPlan Lower(const AdaptiveEmbedding& words, BufferId rows) {
    EncoderPlan plan{{}, builder_.plan().vocabulary_size, stack_.window};
    const auto add_sweep = [&](bool of_segments, const auto& lower) {
      const size_t begin = builder_.node_count();
      lower();
      plan.sweeps.push_back({{begin, builder_.node_count()}, SourceOrder::kForward, of_segments});
    };
    add_sweep(false, [&] {
      LowerEmbedding(words, residual_, builder_);
      builder_.AddNode("text.words.store", StoreRow{residual_, residuals_});
    });
    add_sweep(true, [&] {
      AdaptiveEmbedding segments = block_.segments;
      segments.name = "text.segments";  // in the file it is a part of the masked model
      LowerEmbedding(segments, other_, builder_);
      builder_.AddNode("text.words.load", LoadRow{residuals_, residual_});
      builder_.AddNode("text.segments.add", Add{other_, residual_});
      LowerPositions(stack_, "text.positions", residual_, builder_);
      AddNorm("text.norm", block_.norm_gain, block_.norm_bias);
      LowerQkv(0);
    });
    for (size_t i = 0; i + 1 < stack_.layers.size(); ++i) {
      add_sweep(false, [&] {
        LowerRestOfLayer(i);
        LowerQkv(i + 1);
      });
    }
    add_sweep(false, [&] {
      LowerRestOfLayer(stack_.layers.size() - 1);
      const BufferId result = builder_.QuantisedAs("text.result", residual_, stack_.output);
      builder_.AddNode("text.store", StoreRow{result, rows});
    });
    return plan;
  }

 private:
  using Q = TransformerLayerQuantisers;

  static std::string LayerName(size_t index) { return "text.layers." + std::to_string(index); }
  void AddNorm(const std::string& name, TensorId gain, TensorId bias) {
    builder_.AddNode(name, LayerNorm{residual_, gain, bias, stack_.epsilon, residual_});
  }

  void LowerQkv(size_t index) {
    const TransformerLayer& layer = stack_.layers[index];
    const std::string name = LayerName(index);
    builder_.AddNode(name + ".hidden.store", StoreRow{residual_, residuals_});
    const BufferId input =
        builder_.QuantisedAs(name + ".input1", residual_, At(layer, &Q::attention_input));
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
    AddNorm(name + ".norm1", *layer.attention_norm_gain, *layer.attention_norm_bias);
    const BufferId input =
        builder_.QuantisedAs(name + ".input2", residual_, At(layer, &Q::inner_input));
    builder_.AddNode(name + ".residual2",
                     Add{LowerFeedForward(stack_, layer, name, input, builder_), residual_});
    AddNorm(name + ".norm2", *layer.inner_norm_gain, *layer.inner_norm_bias);
    builder_.EndLayer();
  }

  const MaskedModel& block_;
  const TransformerDecoder& stack_;
  PlanBuilder& builder_;
  const uint64_t qkv_size_;  // of one token
  const BufferId residual_, other_, qkv_;
  const BufferId residuals_;          // [window, width]
  const std::vector<BufferId> qkvs_;  // [window, qkv_size_], by layer
  BufferId layer_qkv_{};              // [qkv_size_], of the layer whose sweep is next
};

uint64_t OutputsOf(const DenseLayer& layer, PlanBuilder& builder) {
  return Rows(builder.plan().weights[layer.weight].shape);
}

}  // namespace

BufferId MakeTokenRows(const MaskedModel& block, PlanBuilder& builder) {
  return builder.SourceRows("text.rows", block.stack.width, block.stack.window, block.stack.output);
}

void LowerReading(const MaskedModel& block, BufferId rows, PlanBuilder& builder) {
  Reading reading{};
  reading.segments = SegmentsOf(block);
  reading.scores_spans = block.scored == ScoredPart::kSpans;
  std::optional<BufferId> input;
  // With codes the pooled vector too enters its product in fixed point.
  const TailInput entering = block.stack.output ? TailInput::kFixedPoint15 : TailInput::kAsIs;
  const auto load = [&](const std::string& name) {
    const BufferId token = builder.Vector(name, block.stack.width, block.stack.output);
    builder.AddNode(name + ".load", LoadRow{rows, token});
    return token;
  };
  reading.pooling.begin = builder.node_count();
  if (block.pooler) {
    reading.pooled = input = builder.Floats("pooled", OutputsOf(*block.pooler, builder));
    LowerDenseLayer(*block.pooler, entering, "pooler", load("pooler.input"), *input, builder);
  }
  reading.scoring = {builder.node_count(), 0};
  reading.pooling.end = reading.scoring.begin;
  if (block.scores) {
    if (!input) input = load("scores.input");
    reading.scores = builder.Floats("scores", OutputsOf(*block.scores, builder));
    LowerDenseLayer(*block.scores, entering, "scores", *input, *reading.scores, builder);
  }
  reading.scoring.end = builder.node_count();
  builder.plan().reading = reading;
}

void LowerMaskedModel(const MaskedModel& block, const AdaptiveEmbedding& words, BufferId rows,
                      PlanBuilder& builder) {
  builder.BeginSource();
  builder.plan().encoder = MaskedLowering(block, builder).Lower(words, rows);
  builder.EndSource();
}

}  // namespace kinglet

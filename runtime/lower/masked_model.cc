#include <optional>
#include <string>
#include <vector>

#include "runtime/lower/blocks.h"
#include "runtime/lower/encoder_stack.h"

namespace kinglet {
namespace {

uint64_t OutputsOf(const DenseLayer& layer, PlanBuilder& builder) {
  return Rows(builder.plan().weights[layer.weight].shape);
}

}  // namespace

BufferId MakeTokenRows(const MaskedModel& block, PlanBuilder& builder) {
  return builder.SourceRows("text.rows", block.stack.width, block.stack.window,
                            builder.Applied(At(block.stack.output)));
}

void LowerReading(const MaskedModel& block, BufferId rows, PlanBuilder& builder) {
  Reading reading{};
  reading.segments = SegmentsOf(block);
  reading.scores_spans = block.scored == ScoredPart::kSpans;
  std::optional<BufferId> input;
  // With codes the pooled vector too enters its product in fixed point.
  const auto quantiser = builder.Applied(At(block.stack.output));
  const TailInput entering = quantiser ? TailInput::kFixedPoint15 : TailInput::kAsIs;
  const auto load = [&](const std::string& name) {
    const BufferId token = builder.Vector(name, block.stack.width, quantiser);
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

// The tokens come first, in a sweep of their own, because the segments that follow are looked up by
// other numbers.
void LowerMaskedModel(const MaskedModel& block, const AdaptiveEmbedding& tokens, BufferId rows,
                      PlanBuilder& builder) {
  builder.BeginSource();
  const TransformerDecoder& stack = block.stack;
  EncoderStack lowering(stack, "text", builder);
  const BufferId residual = lowering.residual();
  const BufferId segment = builder.Floats("text.segment", stack.width);
  EncoderPlan plan{{}, builder.plan().vocabulary_size, stack.window};
  lowering.Sweep(plan, [&] {
    LowerEmbedding(tokens, residual, builder);
    builder.AddNode("text.words.store", StoreRow{residual, lowering.residuals()});
  });
  constexpr bool kOfSegments = true;
  lowering.Sweep(
      plan,
      [&] {
        AdaptiveEmbedding segments = block.segments;
        segments.name = "text.segments";  // in the file it is a part of the masked model
        LowerEmbedding(segments, segment, builder);
        builder.AddNode("text.words.load", LoadRow{lowering.residuals(), residual});
        builder.AddNode("text.segments.add", Add{segment, residual});
        LowerPositions(stack, "text.positions", residual, builder);
        lowering.AddNorm("text.norm", block.norm_gain, block.norm_bias);
        lowering.BeginLayers();
      },
      kOfSegments);
  lowering.LowerLayers(plan);
  lowering.Sweep(plan, [&] {
    lowering.EndLayers();
    const BufferId result = builder.QuantisedAs("text.result", residual, At(stack.output));
    builder.AddNode("text.store", StoreRow{result, rows});
  });
  builder.plan().encoder = plan;
  builder.EndSource();
}

}  // namespace kinglet

#include "runtime/lower/lower.h"

#include <optional>
#include <string>

#include "format/small_build.h"
#include "runtime/lower/blocks.h"
#include "runtime/lower/builder.h"

namespace kinglet {
namespace {

// The buffers of context nodes that queries read. The next token's CacheAppend reads the hidden
// state too, so the buffer of the hidden state, or of its codes, is a state buffer.
struct Context {
  BufferId hidden;
  std::optional<CacheBuffers> cache;
  std::vector<RecurrentState> states = {};  // of a recurrent decoder's layers
};

std::optional<CacheBuffers> AppendTo(const NeuralCache* cache, BufferId hidden,
                                     PlanBuilder& builder) {
  if (cache == nullptr) return std::nullopt;
  return LowerCacheAppend(*cache, hidden, builder);
}

// The blocks around the decoder; null for a block that the model lacks.
struct Surroundings {
  const AdaptiveEmbedding& embedding;
  const DenseLayers* input_layers;
  const DenseLayers* output_layers;
  const NeuralCache* cache;
};

// The hidden state: the result of the output layers, or, without output layers, the decoder's
// output.
BufferId HiddenOf(const Surroundings& around, BufferId decoded, PlanBuilder& builder) {
  if (around.output_layers == nullptr) return decoded;
  const TensorId last = around.output_layers->layers.back().weight;
  return builder.Floats("hidden", Rows(builder.plan().weights[last].shape), true);
}

// Fills the decoder's input with the token's vector.
void LowerInput(const Surroundings& around, BufferId input, PlanBuilder& builder) {
  if (around.input_layers == nullptr) return LowerEmbedding(around.embedding, input, builder);
  const BufferId row = builder.Floats("embedding", around.embedding.width);
  LowerEmbedding(around.embedding, row, builder);
  LowerDenseLayers(*around.input_layers, row, input, builder);
}

void LowerOutput(const Surroundings& around, BufferId decoded, BufferId hidden,
                 PlanBuilder& builder) {
  if (around.output_layers != nullptr) {
    LowerDenseLayers(*around.output_layers, decoded, hidden, builder);
  }
}

Context LowerContext(const TransformerDecoder& decoder, const Surroundings& around,
                     std::span<const SourceMemory> memories, PlanBuilder& builder) {
  // After the last layer the residual stream is the decoder's output.
  const std::string name = DecodedName(around.output_layers);
  const bool kept = around.output_layers == nullptr;
  const auto output = builder.Applied(At(decoder.output));
  const BufferId residual = builder.Floats(name, decoder.width, kept && !output);
  const BufferId decoded =
      output ? builder.Codes(name + ".codes", decoder.width, *output, kept) : residual;
  const BufferId hidden = HiddenOf(around, decoded, builder);
  const Context context{hidden, AppendTo(around.cache, hidden, builder)};
  LowerInput(around, residual, builder);
  LowerDecoder(decoder, residual, memories, builder);
  LowerQuantised(name + ".quantise", {residual, decoded, At(decoder.output)}, builder);
  LowerOutput(around, decoded, hidden, builder);
  return context;
}

Context LowerContext(const RecurrentDecoder& decoder, const Surroundings& around,
                     const SourceMemory* memory, PlanBuilder& builder) {
  RecurrentLowering lowering(decoder, DecodedName(around.output_layers), memory, builder);
  const BufferId hidden = HiddenOf(around, lowering.decoded(), builder);
  const Context context{hidden,
                        AppendTo(around.cache, hidden, builder),
                        {lowering.states().begin(), lowering.states().end()}};
  lowering.LowerPreviousProducts();
  LowerInput(around, lowering.embedded(), builder);
  lowering.LowerLayers();
  LowerOutput(around, lowering.decoded(), hidden, builder);
  return context;
}

[[maybe_unused]] void LowerWithoutDecoder(const AdaptiveEmbedding& embedding,
                                          const BagClassifier* classifier, PlanBuilder& builder) {
  const BufferId embedded = builder.Floats("embedded", embedding.width);
  LowerEmbedding(embedding, embedded, builder);
  Plan& plan = builder.plan();
  plan.hidden = embedded;
  std::optional<BagBuffers> bag;
  if (classifier != nullptr) bag = LowerBag(*classifier, embedded, builder);
  plan.context = {0, builder.node_count()};
  if (bag) LowerBagClassifier(*classifier, *bag, builder);
}

// The context nodes make the hidden state of the token at the frame's position.
[[maybe_unused]] void LowerMasked(const ModelDescription& description, const MaskedModel& masked,
                                  PlanBuilder& builder) {
  Plan& plan = builder.plan();
  const auto* output_layers = FindDenseLayers(description, DensePlace::kOutput);
  const BufferId rows = MakeTokenRows(masked, builder);
  const bool kept = output_layers == nullptr;
  const std::string name = DecodedName(output_layers);
  const auto quantiser = builder.Applied(At(masked.stack.output));
  const BufferId token = quantiser
                             ? builder.Codes(name + ".codes", masked.stack.width, *quantiser, kept)
                             : builder.Floats(name, masked.stack.width, kept);
  plan.hidden = token;
  if (output_layers != nullptr) {
    const TensorId last = output_layers->layers.back().weight;
    plan.hidden = builder.Floats("hidden", Rows(plan.weights[last].shape), true);
  }
  builder.AddNode("token.load", LoadRow{rows, token});
  if (output_layers != nullptr) LowerDenseLayers(*output_layers, token, plan.hidden, builder);
  plan.context = {0, builder.node_count()};
  if (const auto* softmax = FindBlock<AdaptiveSoftmax>(description)) {
    builder.BeginQueries();
    LowerSoftmax(*softmax, plan.hidden, builder);
    builder.EndQueries();
  }
  LowerReading(masked, rows, builder);
  LowerMaskedModel(masked, *FindBlock<AdaptiveEmbedding>(description), rows, builder);
}

}  // namespace

Result<Plan> Lower(const ModelFile& file) { return Lower(file.description(), file.tensors()); }

Result<Plan> Lower(const ModelDescription& description, std::span<const TensorView> tensors,
                   std::vector<QuantiserPoint>* points) {
  const auto* embedding = FindBlock<AdaptiveEmbedding>(description);
  const auto* transformer = FindBlock<TransformerDecoder>(description);
  const auto* recurrent = FindBlock<RecurrentDecoder>(description);
  const auto* softmax = FindBlock<AdaptiveSoftmax>(description);
  const auto* cache = FindBlock<NeuralCache>(description);
  const bool predicts = IsLanguageModel(description);
  const auto* encoder = FindBlock<TransformerEncoder>(description);
  const auto* recurrent_encoder = FindBlock<RecurrentEncoder>(description);
  if constexpr (kSmallBuild) {
    if (!predicts) return LeftOut("model", "blocks", "a language model", "an embedding alone");
    // Files with encoders are refused; so the compiler drops what lowers them.
    encoder = nullptr, recurrent_encoder = nullptr;
  }
  if (embedding == nullptr ||
      (predicts && ((transformer == nullptr && recurrent == nullptr) || softmax == nullptr))) {
    return Status::Refusal(KINGLET_INVALID_MODEL, "model", "blocks",
                           "an embedding, or also a decoder and a softmax", "one of them missing");
  }

  Plan plan;
  plan.weights = tensors;
  plan.vocabulary_size = description.vocabulary_size;
  PlanBuilder builder(plan, points);
  if constexpr (!kSmallBuild) {
    if (const auto* masked = FindBlock<MaskedModel>(description)) {
      LowerMasked(description, *masked, builder);
      return plan;
    }
    if (!predicts) {
      LowerWithoutDecoder(*embedding, FindBlock<BagClassifier>(description), builder);
      return plan;
    }
  }

  std::vector<SourceMemory> memories;
  if (encoder != nullptr) memories = MakeSourceMemories(*transformer, *encoder, builder);
  if (recurrent_encoder != nullptr && recurrent->attention) {
    memories = {MakeSourceMemory(*recurrent, *recurrent_encoder, builder)};
  }
  const SourceMemory* const memory = memories.empty() ? nullptr : memories.data();
  const Surroundings around{*embedding, FindDenseLayers(description, DensePlace::kInput),
                            FindDenseLayers(description, DensePlace::kOutput), cache};
  const Context context = transformer != nullptr
                              ? LowerContext(*transformer, around, memories, builder)
                              : LowerContext(*recurrent, around, memory, builder);
  plan.context = {0, builder.node_count()};
  plan.hidden = context.hidden;

  builder.BeginQueries();
  LowerSoftmax(*softmax, context.hidden, builder);
  if (cache != nullptr) LowerCacheQuery(*cache, context.hidden, *context.cache, builder);
  builder.EndQueries();
  if (encoder != nullptr) LowerEncoder(*encoder, *transformer, memories, builder);
  if (recurrent_encoder != nullptr) {
    LowerEncoder(*recurrent_encoder, *recurrent, memory, context.states, builder);
  }
  return plan;
}

}  // namespace kinglet

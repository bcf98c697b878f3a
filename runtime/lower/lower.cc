#include "runtime/lower/lower.h"

#include <optional>

#include "runtime/lower/blocks.h"
#include "runtime/lower/builder.h"

namespace kinglet {
namespace {

// The results of the context steps that queries read. The next token's CacheAppend reads the hidden
// state too, so the buffer of the hidden state, or of its codes, is a state buffer.
struct Context {
  BufferId hidden;
  std::optional<CacheBuffers> cache;
};

std::optional<CacheBuffers> AppendTo(const NeuralCache* cache, BufferId hidden,
                                     PlanBuilder& builder) {
  if (cache == nullptr) return std::nullopt;
  return LowerCacheAppend(*cache, hidden, builder);
}

Context LowerContext(const TransformerDecoder& decoder, const AdaptiveEmbedding& embedding,
                     const NeuralCache* cache, std::span<const SourceMemory> memories,
                     PlanBuilder& builder) {
  // After the last layer the residual stream is the hidden state.
  const BufferId residual = builder.Reals("hidden", decoder.width, !decoder.output.has_value());
  const BufferId hidden = decoder.output
                              ? builder.Codes("hidden.codes", decoder.width, *decoder.output, true)
                              : residual;
  const Context context{hidden, AppendTo(cache, hidden, builder)};
  LowerEmbedding(embedding, residual, builder);
  LowerDecoder(decoder, residual, memories, builder);
  if (decoder.output) builder.AddStep("hidden.quantise", Quantise{residual, hidden});
  return context;
}

Context LowerContext(const RecurrentDecoder& decoder, const AdaptiveEmbedding& embedding,
                     const NeuralCache* cache, PlanBuilder& builder) {
  RecurrentLowering lowering(decoder, builder);
  const Context context{lowering.hidden(), AppendTo(cache, lowering.hidden(), builder)};
  lowering.LowerPreviousProducts();
  LowerEmbedding(embedding, lowering.embedded(), builder);
  lowering.LowerLayers();
  return context;
}

void LowerWithoutDecoder(const AdaptiveEmbedding& embedding, const BagClassifier* classifier,
                         PlanBuilder& builder) {
  const BufferId embedded = builder.Reals("embedded", embedding.width);
  LowerEmbedding(embedding, embedded, builder);
  Plan& plan = builder.plan();
  plan.hidden = embedded;
  std::optional<BagBuffers> bag;
  if (classifier != nullptr) bag = LowerBag(*classifier, embedded, builder);
  plan.context = {0, builder.step_count()};
  if (bag) LowerBagClassifier(*classifier, *bag, builder);
}

}  // namespace

Result<Plan> Lower(const ModelFile& file) { return Lower(file.description(), file.tensors()); }

Result<Plan> Lower(const ModelDescription& description, std::span<const TensorView> tensors) {
  const auto* embedding = FindBlock<AdaptiveEmbedding>(description);
  const auto* transformer = FindBlock<TransformerDecoder>(description);
  const auto* recurrent = FindBlock<RecurrentDecoder>(description);
  const auto* softmax = FindBlock<AdaptiveSoftmax>(description);
  const auto* cache = FindBlock<NeuralCache>(description);
  const bool predicts = IsLanguageModel(description);
  if (embedding == nullptr ||
      (predicts && ((transformer == nullptr && recurrent == nullptr) || softmax == nullptr))) {
    return Status::Refusal(KINGLET_INVALID_MODEL, "model", "blocks",
                           "an embedding, or also a decoder and a softmax", "one of them missing");
  }

  Plan plan;
  plan.weights = tensors;
  plan.vocabulary_size = description.vocabulary_size;
  PlanBuilder builder(plan);
  if (!predicts) {
    LowerWithoutDecoder(*embedding, FindBlock<BagClassifier>(description), builder);
    return plan;
  }

  const auto* encoder = FindBlock<TransformerEncoder>(description);
  std::vector<SourceMemory> memories;
  if (encoder != nullptr) memories = MakeSourceMemories(*transformer, *encoder, builder);
  const Context context = transformer != nullptr
                              ? LowerContext(*transformer, *embedding, cache, memories, builder)
                              : LowerContext(*recurrent, *embedding, cache, builder);
  plan.context = {0, builder.step_count()};
  plan.hidden = context.hidden;

  builder.BeginQueries();
  LowerSoftmax(*softmax, context.hidden, builder);
  if (cache != nullptr) LowerCacheQuery(*cache, context.hidden, *context.cache, builder);
  builder.EndQueries();
  if (encoder != nullptr) LowerEncoder(*encoder, *transformer, memories, builder);
  return plan;
}

}  // namespace kinglet

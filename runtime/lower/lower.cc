#include "runtime/lower/lower.h"

#include <optional>

#include "runtime/lower/blocks.h"
#include "runtime/lower/builder.h"

namespace kinglet {

Result<Plan> Lower(const ModelFile& file) { return Lower(file.description(), file.tensors()); }

Result<Plan> Lower(const ModelDescription& description, std::span<const TensorView> tensors) {
  const auto* embedding = FindBlock<AdaptiveEmbedding>(description);
  const auto* decoder = FindBlock<MicronetDecoder>(description);
  const auto* softmax = FindBlock<AdaptiveSoftmax>(description);
  const auto* cache = FindBlock<NeuralCache>(description);
  if (embedding == nullptr || decoder == nullptr || softmax == nullptr) {
    return Status::Refusal(KINGLET_INVALID_MODEL, "model", "blocks",
                           "an embedding, a decoder and a softmax", "one of them missing");
  }

  Plan plan;
  plan.weights = tensors;
  plan.vocabulary_size = description.vocabulary_size;
  PlanBuilder builder(plan);

  // The residual stream ends as the last hidden state, which the next token's CacheAppend and all
  // queries read: so it, or its codes, is state.
  const BufferId residual = builder.Reals("hidden", decoder->width, !decoder->output.has_value());
  const BufferId hidden =
      decoder->output ? builder.Codes("hidden.codes", decoder->width, *decoder->output, true)
                      : residual;

  std::optional<CacheBuffers> cache_buffers;
  if (cache != nullptr) cache_buffers = LowerCacheAppend(*cache, hidden, builder);
  LowerEmbedding(*embedding, residual, builder);
  LowerDecoder(*decoder, residual, builder);
  if (decoder->output) builder.AddStep("hidden.quantise", Quantise{residual, hidden});
  plan.context = {0, builder.step_count()};
  plan.hidden = hidden;

  LowerSoftmax(*softmax, hidden, builder);
  if (cache != nullptr) LowerCacheQuery(*cache, hidden, *cache_buffers, builder);
  return plan;
}

}  // namespace kinglet

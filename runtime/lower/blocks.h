// One function per kind of block, each in a file of its own: what its steps are. The buffers passed
// in and out are the seams between blocks.
#ifndef KINGLET_RUNTIME_LOWER_BLOCKS_H_
#define KINGLET_RUNTIME_LOWER_BLOCKS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/blocks.h"
#include "runtime/lower/builder.h"

namespace kinglet {

// The quantiser that a layer, or its cross-attention, has at one point, if it is quantised at all.
template <class Quantised, class Member>
std::optional<ActivationQuantiser> At(const Quantised& layer, Member member) {
  if (!layer.quantisers) return std::nullopt;
  return (*layer.quantisers).*member;
}

// Rows of source tokens that attention reads: [window, ..] of reals or codes.
struct SourceMemory {
  BufferId rows;
  uint32_t window;
};

// token -> residual stream [width] of reals.
void LowerEmbedding(const AdaptiveEmbedding& block, BufferId residual, PlanBuilder& builder);

// Adds absolute positions to the residual stream, then updates it in place, layer by layer. Buffers
// carry the names "layers.<i>.<what>". `memories`: by layer what its cross-attention reads; empty
// without an encoder.
void LowerDecoder(const TransformerDecoder& block, BufferId residual,
                  std::span<const SourceMemory> memories, PlanBuilder& builder);

// Adds the block's absolute positions, if it has any, to the residual stream: the step `name`.
void LowerPositions(const TransformerDecoder& block, const std::string& name, BufferId residual,
                    PlanBuilder& builder);

// Parts of layers, each what its sublayer makes of the (normalised) input; buffers carry the names
// "<name>.<what>". A feed-forward network; it ends [width].
BufferId LowerFeedForward(const TransformerLayer& layer, uint32_t width, const std::string& name,
                          BufferId input, PlanBuilder& builder);
// Attention to the encoded source.
BufferId LowerCrossAttention(const TransformerDecoder& block, const CrossAttention& cross,
                             const SourceMemory& memory, const std::string& name, BufferId input,
                             PlanBuilder& builder);
// Attention of `query` (kernels/op.h, SourceAttention) to `memory`, with the block's heads: the
// weighted values. The quantisers are those of the weights and of the result.
BufferId LowerSourceAttention(const TransformerDecoder& block, const SourceMemory& memory,
                              const std::string& name, BufferId query,
                              const std::optional<ActivationQuantiser>& weights_quantiser,
                              const std::optional<ActivationQuantiser>& attended_quantiser,
                              PlanBuilder& builder);

// State for the keys and values of the source, a memory for each layer of the decoder.
std::vector<SourceMemory> MakeSourceMemories(const TransformerDecoder& decoder,
                                             const TransformerEncoder& encoder,
                                             PlanBuilder& builder);
// Fills the memories. Sets plan.encoder.
void LowerEncoder(const TransformerEncoder& block, const TransformerDecoder& decoder,
                  std::span<const SourceMemory> memories, PlanBuilder& builder);

// A recurrent decoder: what the previous token left is multiplied before anything of this token is
// written, so that no state is held twice. Buffers carry the names "layers.<i>.<what>"; the last
// layer's output is "hidden". REQUIRES: the block outlives it.
class RecurrentLowering {
 public:
  // Makes the buffers between the layers.
  RecurrentLowering(const RecurrentDecoder& block, PlanBuilder& builder);

  BufferId embedded() const { return input_.reals; }  // [inputs] of reals, to be filled
  BufferId hidden() const { return outputs_.back().codes; }

  void LowerPreviousProducts();  // before the embedding
  void LowerLayers();            // after it

 private:
  // A vector between layers; without quantisers the codes are the reals.
  struct Vector {
    BufferId reals, codes;
  };
  Vector Make(const std::string& name, uint64_t count, bool reals_kept, bool codes_kept,
              const std::optional<ActivationQuantiser>& quantiser);
  const Vector& InputOf(size_t layer) const { return layer == 0 ? input_ : outputs_[layer - 1]; }
  void LowerGates(size_t index, BufferId input);
  void Quantised(const std::string& step_name, const Vector& vector);

  const RecurrentDecoder& block_;
  PlanBuilder& builder_;
  Vector input_;
  std::vector<Vector> outputs_;                    // by layer
  std::vector<std::optional<BufferId>> previous_;  // by layer: product with what was left
};

// hidden (reals or codes) -> one ClusterPlan per cluster, appended to the plan.
void LowerSoftmax(const AdaptiveSoftmax& block, BufferId hidden, PlanBuilder& builder);

// The first step of a token: remember the previous step's hidden state with this token.
struct CacheBuffers {
  BufferId keys, words;
};
CacheBuffers LowerCacheAppend(const NeuralCache& block, BufferId hidden, PlanBuilder& builder);
// The query: weights of the stored pairs. Sets plan.cache.
void LowerCacheQuery(const NeuralCache& block, BufferId hidden, const CacheBuffers& buffers,
                     PlanBuilder& builder);

// The last step of a token of a list to be classified: add its vector to the bag.
struct BagBuffers {
  BufferId sum, words;
  std::optional<BufferId> largest;
};
BagBuffers LowerBag(const BagClassifier& block, BufferId embedded, PlanBuilder& builder);
// The query: class scores of the list. Sets plan.classifier.
void LowerBagClassifier(const BagClassifier& block, const BagBuffers& bag, PlanBuilder& builder);

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_LOWER_BLOCKS_H_

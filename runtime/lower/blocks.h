// A function for each kind of block, in a file of its own, that adds the block's nodes to a plan.
// Blocks are connected by the buffers that these functions take and return. Buffers of a layer are
// named "layers.<i>.<what>".
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

// The quantiser of a layer, or of its cross-attention, at one point; null if it has none there.
template <class Quantised, class Member>
const ActivationQuantiser* At(const Quantised& layer, Member member) {
  return layer.quantisers ? &((*layer.quantisers).*member) : nullptr;
}
inline const ActivationQuantiser* At(const std::optional<ActivationQuantiser>& quantiser) {
  return quantiser ? &*quantiser : nullptr;
}

// A buffer with one row for each source token, which attention reads: [window, ..], floats or
// codes.
struct SourceMemory {
  BufferId rows;
  uint32_t window;
};

// Adds the node that writes the token's vector to `residual`, [width] of floats.
void LowerEmbedding(const AdaptiveEmbedding& block, BufferId residual, PlanBuilder& builder);

// Adds the nodes that compute the dense layers from `x`, floats or codes, to `y`, floats of the
// last layer's width. The nodes of layer i are named "<block's name>.<i>" and what follows it.
void LowerDenseLayers(const DenseLayers& block, BufferId x, BufferId y, PlanBuilder& builder);
// Adds the nodes of one layer, "<name>" and what follows it.
void LowerDenseLayer(const DenseLayer& layer, TailInput input, const std::string& name, BufferId x,
                     BufferId y, PlanBuilder& builder);
// Adds the node "<name>.activation" on x, floats; adds no node for Activation::kNone.
void LowerActivation(Activation activation, const std::string& name, BufferId x,
                     PlanBuilder& builder);

// Adds the nodes that add absolute positions to the residual stream and then update it in place,
// layer by layer. `memories` are the rows that the cross-attention of each layer reads; empty
// without an encoder.
void LowerDecoder(const TransformerDecoder& block, BufferId residual,
                  std::span<const SourceMemory> memories, PlanBuilder& builder);

// Adds the node `name`, which adds absolute positions to the residual stream, if the block has any.
void LowerPositions(const TransformerDecoder& block, const std::string& name, BufferId residual,
                    PlanBuilder& builder);

// Parts of layers. Each takes its (normalised) input and returns the sublayer's output; buffers are
// named "<name>.<what>".

// The feed-forward network of a layer of the block. Returns [block.width].
BufferId LowerFeedForward(const TransformerDecoder& block, const TransformerLayer& layer,
                          const std::string& name, BufferId input, PlanBuilder& builder);
// Cross-attention: attention to the encoded source. Returns [block.width].
BufferId LowerCrossAttention(const TransformerDecoder& block, const CrossAttention& cross,
                             const SourceMemory& memory, const std::string& name, BufferId input,
                             PlanBuilder& builder);
// Attention of `query` to the rows of `memory` (kernels/op.h, SourceAttention) with the block's
// heads. Returns the weighted sum of values. The quantisers are those of the weights and of the
// sum.
BufferId LowerSourceAttention(const TransformerDecoder& block, const SourceMemory& memory,
                              const std::string& name, BufferId query,
                              const ActivationQuantiser* weights_quantiser,
                              const ActivationQuantiser* attended_quantiser, PlanBuilder& builder);

// Adds state buffers for the keys and values of the source, one for each layer of the decoder.
std::vector<SourceMemory> MakeSourceMemories(const TransformerDecoder& decoder,
                                             const TransformerEncoder& encoder,
                                             PlanBuilder& builder);
// Adds the encoder's sweeps, which fill the memories, and sets plan.encoder.
void LowerEncoder(const TransformerEncoder& block, const TransformerDecoder& decoder,
                  std::span<const SourceMemory> memories, PlanBuilder& builder);

// Adds the buffer of a masked model's results: [window, width] of floats, a row for each token.
BufferId MakeTokenRows(const MaskedModel& block, PlanBuilder& builder);
// Adds the nodes that make the pooled vector and the scores from a masked model's results, `rows`;
// sets plan.reading.
void LowerReading(const MaskedModel& block, BufferId rows, PlanBuilder& builder);
// Adds the sweeps that fill `rows`, a masked model's results; sets plan.encoder.
void LowerMaskedModel(const MaskedModel& block, const AdaptiveEmbedding& tokens, BufferId rows,
                      PlanBuilder& builder);

// A vector as floats and as codes; without a quantiser both are the same buffer.
struct QuantisedVector {
  BufferId floats, codes;
  const ActivationQuantiser* quantiser = nullptr;  // what LowerQuantised notes
};
// The vectors that a recurrent layer keeps from token to token.
struct RecurrentState {
  QuantisedVector hidden;
  std::optional<BufferId> cell;
};

// Adds the node `name`, which makes the vector's codes, if they are a buffer of their own.
void LowerQuantised(const std::string& name, const QuantisedVector& vector, PlanBuilder& builder);
// Adds the node "<name>.gates" of a cell. `previous` is the product with the previous vector.
void LowerGates(const RecurrentLayer& layer, const std::string& name, BufferId input,
                const std::optional<BufferId>& previous, const RecurrentState& state,
                PlanBuilder& builder);

// Adds the state buffer that a recurrent decoder's attention reads. REQUIRES: there is attention.
SourceMemory MakeSourceMemory(const RecurrentDecoder& decoder, const RecurrentEncoder& encoder,
                              PlanBuilder& builder);
// Adds the encoder's sweeps, which fill the memory (null without attention) and the states of the
// decoder's layers; sets plan.encoder.
void LowerEncoder(const RecurrentEncoder& block, const RecurrentDecoder& decoder,
                  const SourceMemory* memory, std::span<const RecurrentState> states,
                  PlanBuilder& builder);

// Adds the nodes of attention to `memory`. `query` is the decoder's output; `hidden` receives the
// result.
void LowerGlobalAttention(const GlobalAttention& attention, const SourceMemory& memory,
                          const QuantisedVector& query, const QuantisedVector& hidden,
                          PlanBuilder& builder);

// Lowers a recurrent decoder (LSTM, GRU, QRNN, ReLU or tanh cells). A token begins with all
// products of the previous token's vectors, so that these can be overwritten and no state is stored
// twice. The last layer's output is named `output`. REQUIRES: the block outlives the object.
class RecurrentLowering {
 public:
  // Makes the buffers between the layers. `memory` is null without attention.
  RecurrentLowering(const RecurrentDecoder& block, const std::string& output,
                    const SourceMemory* memory, PlanBuilder& builder);

  // [inputs] of floats, which the embedding fills.
  BufferId embedded() const { return embedded_; }
  // The decoder's output: floats or codes.
  BufferId decoded() const { return decoded_.codes; }
  // The state of each layer.
  std::span<const RecurrentState> states() const { return states_; }

  void LowerPreviousProducts();  // before the embedding
  void LowerLayers();            // after the embedding

 private:
  using Vector = QuantisedVector;
  Vector Make(const std::string& name, uint64_t count, bool floats_kept, bool codes_kept,
              const ActivationQuantiser* quantiser);
  const Vector& InputOf(size_t layer) const {
    return layer == 0 ? input_ : states_[layer - 1].hidden;
  }

  const RecurrentDecoder& block_;
  const SourceMemory* memory_;
  PlanBuilder& builder_;
  BufferId embedded_{}, fed_{};
  Vector input_{}, decoded_{};
  std::vector<RecurrentState> states_;  // by layer
  std::vector<std::optional<BufferId>>
      previous_;  // by layer: product of the previous token's vector
};

// Adds the nodes that compute each cluster of the softmax from `hidden` (floats or codes), and a
// ClusterPlan for each to the plan.
void LowerSoftmax(const AdaptiveSoftmax& block, BufferId hidden, PlanBuilder& builder);

// Adds a token's first node, which stores the pair (previous hidden state, this token) in the
// neural cache.
struct CacheBuffers {
  BufferId keys, tokens;
};
CacheBuffers LowerCacheAppend(const NeuralCache& block, BufferId hidden, PlanBuilder& builder);
// Adds the node of queries that computes the weights of the stored pairs, and sets plan.cache.
void LowerCacheQuery(const NeuralCache& block, BufferId hidden, const CacheBuffers& buffers,
                     PlanBuilder& builder);

// Adds the node that adds the vector of a token to the bag of its list.
struct BagBuffers {
  BufferId sum, count;
  std::optional<BufferId> largest;
};
BagBuffers LowerBag(const BagClassifier& block, BufferId embedded, PlanBuilder& builder);
// Adds the nodes that compute the class scores of a list, and sets plan.classifier.
void LowerBagClassifier(const BagClassifier& block, const BagBuffers& bag, PlanBuilder& builder);

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_LOWER_BLOCKS_H_

// A plan: the model as nodes over named buffers. runtime/lower makes it once per model, a backend
// binds its nodes to kernels, and the session's loop runs them. Plain values; immutable once made.
#ifndef KINGLET_KERNELS_PLAN_H_
#define KINGLET_KERNELS_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "format/encoding.h"
#include "kernels/op.h"
#include "kernels/ring.h"

namespace kinglet {

// kReal is float, or double in ref64. Codes are integers with one quantiser for the entire buffer;
// Codes take 16 bits unless the quantiser's largest code is over 32,767. kCode9 is rows of codes
// that fit in 9 bits (kernels/nine_bit_row.h).
enum class Element : uint8_t { kReal, kCode9, kCode16, kCode32, kUint32 };

// The largest code a quantiser can give: round_half_even(max_abs / scale).
int64_t LargestCode(const ActivationQuantiser& quantiser);

// What the encoder's nodes do with a scratch buffer. The nodes run on several tokens of the source
// at once: each token has a buffer of its own, or all have one with a row for each token.
enum class SourceUse : uint8_t { kNone, kEachToken, kAllTokens };

struct BufferSpec {
  std::string name;
  Element element;
  uint64_t count;
  // Kept from token to token. Every buffer starts as zeros. A buffer that is not state may keep
  // what saves a later token work (cached rows), but never changes a bit of that token's results.
  bool state = false;
  std::optional<ActivationQuantiser> quantiser = std::nullopt;  // present iff the element is a code
  Ring ring = {};                                               // of a state buffer
  uint64_t row = 0;  // codes in a row of kCode9, which divides `count`
  // Scratch of the nodes that answer queries; the nodes of context and encoder do not touch it.
  bool of_queries = false;
  SourceUse source = SourceUse::kNone;
};

struct Node {
  std::string name;  // the component it belongs to: "layers.0.qkv"
  Op op;
};

struct NodeRange {
  size_t begin = 0, end = 0;
};

// A group of tokens with a common softmax: the head (cluster 0) or a tail.
struct ClusterPlan {
  NodeRange nodes;        // fill logits and normaliser from the hidden state
  uint32_t first, size;   // tokens
  uint32_t parent_logit;  // index of a tail's logit in the head; unused for the head
  BufferId logits;        // [size] of floats; the head has one logit per tail after its tokens
  BufferId normaliser;    // LogSumExp::out
  LogitTiles tiles;       // of `logits`
};

struct CachePlan {
  NodeRange nodes;  // fill weights and total
  uint32_t capacity;
  // The total is 0 before this token of a stream. If first_position is above 1, the softmax alone
  // gives the distribution of earlier tokens; if it is 1, the session chooses what an empty cache
  // does.
  uint64_t first_position;
  double lambda;
  BufferId tokens;   // state, [capacity] of kUint32
  BufferId weights;  // [capacity] of floats
  BufferId total;    // [1] of floats
};

// Computes the class scores of a list of words, after the context nodes of its last token.
struct ClassifierPlan {
  NodeRange nodes;  // fill logits and normaliser from the bag
  std::optional<uint32_t> padding;
  BufferId logits;      // [classes] of floats
  BufferId normaliser;  // LogSumExp::out
};

// Which source tokens a sweep of the encoder runs for, and in which order.
enum class SourceOrder : uint8_t {
  kForward,   // every token
  kBackward,  // every token, the last one first
  kOnce,      // the first token alone
};
struct EncoderSweep : NodeRange {
  SourceOrder order = SourceOrder::kForward;
  // The nodes' tokens are the segment numbers of the source's tokens (Reading), not their ids.
  bool of_segments = false;
};

// Encodes the source of a translation into the buffers that the decoder's attention reads, or the
// text of a masked model into the vectors of its tokens. A sweep ends before the next sweep begins.
struct EncoderPlan {
  std::vector<EncoderSweep> sweeps;
  uint32_t vocabulary_size;  // of the source
  uint32_t window;           // tokens of the longest source
};

// How a masked model answers queries about an encoded text. The context nodes, with the index of a
// token as the frame's position, compute the hidden state of that token from its vector.
struct Reading {
  uint32_t segments;  // segment numbers are below this
  NodeRange pooling;  // compute the pooled vector of the text, at position 0; may be empty
  std::optional<BufferId> pooled;  // of floats
  NodeRange scoring;  // run after `pooling` or, for scores of spans, at the position of any token
  std::optional<BufferId> scores;  // of floats
  bool scores_spans = false;       // scores are [start, end] of each token
};

struct Plan {
  std::span<const TensorView>
      weights;  // the file's tensor directory; the model file outlives the plan
  std::vector<BufferSpec> buffers;
  std::vector<Node> nodes;  // context, then each query group's, then reading, then the encoder's
  NodeRange context;        // run for every token
  BufferId hidden{};        // the context's result, which all queries read: floats, or codes
  std::vector<ClusterPlan>
      clusters;  // head first, then tails in token order; empty without a language model
  std::optional<CachePlan> cache;
  std::optional<ClassifierPlan> classifier;
  std::optional<EncoderPlan> encoder;
  std::optional<Reading> reading;  // of a masked model, which has an encoder too
  uint32_t vocabulary_size = 0;
  // By id: the bytes of a word that the model spells (EmbeddingBin::spelling), 0 for a word of a
  // table; empty for a model that spells no words.
  std::vector<uint16_t> letters = {};

  const BufferSpec& buffer(BufferId id) const { return buffers[static_cast<size_t>(id)]; }
};

// Calls visit (kernels/operands.h) for all operands of an operation of the plan: those that the
// operation names, and the codebook of each coded table among them.
template <class Visit>
void VisitOperands(const Plan& plan, const Op& op, Visit&& visit) {
  struct WithCodebooks {
    const Plan& plan;
    std::remove_reference_t<Visit>& visit;
    void Reads(BufferId id) { visit.Reads(id); }
    void Writes(BufferId id) { visit.Writes(id); }
    void Codes(WeightId id) { visit.Codes(id); }
    void Weight(WeightId id) {
      visit.Weight(id);
      if (const CodedView* coded = plan.weights[id].coded()) visit.Weight(coded->scheme.codebook);
    }
  };
  WithCodebooks all{plan, visit};
  std::visit([&](const auto& each) { each.Operands(all); }, op);
}

// The node that makes a token's vector: the first EmbedRow. Every plan has such a node; a model
// with an encoder has a second EmbedRow, for the source's tokens.
size_t EmbeddingNode(const Plan& plan);

// Whether streams keep rows of DeFINE units, which no state contains.
bool KeepsRows(const Plan& plan);

}  // namespace kinglet

#endif  // KINGLET_KERNELS_PLAN_H_

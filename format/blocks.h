// The parts of a model: the block axis of the library (embeddings, decoders, softmax, neural cache,
// classifier, encoder). A file stores blocks, not operations, so lowering (runtime/lower)
// can improve without converting again. Blocks are plain values: converters fill them for the
// writer, the reader fills them from a verified file.
//
// A TensorId indexes the file's tensor directory. The reader checks every id, shape and relation
// that the comments below state, so code that gets blocks from the reader may rely on them.
#ifndef KINGLET_FORMAT_BLOCKS_H_
#define KINGLET_FORMAT_BLOCKS_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "format/activation.h"
#include "format/define_unit.h"
#include "format/dense_layers.h"
#include "format/embedding_blocks.h"
#include "format/encoding.h"
#include "format/overloaded.h"
#include "format/recurrent_blocks.h"

namespace kinglet {

// The contents of attention's window slots that are older than the first token of a stream.
enum class StreamStart : uint8_t {
  kMasked = 0,  // nothing: a mask excludes those slots from the softmax
  // Keys and values that are part of the softmax: those of `TransformerLayer::start`, or zeros
  // (MicroNet's quantised network, the zero memory of TransfoXL).
  kZeros = 1,
};
constexpr std::array<std::string_view, 2> NamesOf(StreamStart /*kind*/) {
  return {"masked", "zeros"};
}

// Where a layer normalises its input x; f is the attention, then the inner layer (feed-forward).
enum class NormOrder : uint8_t {
  kPre = 0,   // x + f(LN(x))
  kPost = 1,  // LN(x + f(x))
  // One norm at the layer's end, y / sqrt(mean of y^2 + epsilon) with an epsilon of the layer's own
  // (icefall's BasicNorm); y is x after both sums.
  kEnd = 2,
};
constexpr std::array<std::string_view, 3> NamesOf(NormOrder /*kind*/) {
  return {"pre", "post", "end"};
}

// The alternatives of Positions define how the position of a token enters the computation. t: index
// of the token in its stream; D: distance, by how many tokens a key is older than the attention
// query.

// Each layer has a trained column for each window slot, shared by all heads:
// score += q . column / sqrt(key_size) (Yan et al. 2020).
struct SlotPositions {};

// Relative positional encoding (Dai et al. 2019, "Transformer-XL", section 3.3), with the content
// bias u and the position bias w of the attention query q:
// score = ((q + u) . k + (q + w) . r_D) / sqrt(key_size), r_D = `positions` of the layer times
// R(D), R(D) = [sin(D f_0), .., sin(D f_n), cos(D f_0), .., cos(D f_n)], f = frequencies.
struct RelativeSinusoids {
  TensorId frequencies;           // [width / 2], float32, each in [0, kMaxFrequency]
  std::optional<uint32_t> clamp;  // the largest D; larger distances count as `clamp`
  // Angles and R(D) are rounded to float32 also in ref64, as in icefall's table.
  bool rounded = false;
};

// Adds to the scaled embedding the sines and then the cosines of (first + t) f_j. Angle and
// function value are rounded to float32, as in fairseq's table.
struct AbsoluteSinusoids {
  TensorId frequencies;  // [width / 2], float32, each in [0, kMaxFrequency]
  uint32_t first;        // position of token 0; in fairseq 2, its padding index plus 1
};

// Adds row t to the scaled embedding (learned positions).
struct PositionTable {
  TensorId table;  // [window, width]
};

// Positions have no effect, except that attention reads only the tokens in the window (ESPnet).
struct NoPositions {};

using Positions =
    std::variant<SlotPositions, RelativeSinusoids, AbsoluteSinusoids, PositionTable, NoPositions>;

// Whether the token's own index t enters, not only distances. A stream then has `window` positions.
inline bool IsAbsolute(const Positions& positions) {
  return std::visit(Overloaded{[](const SlotPositions&) { return false; },
                               [](const RelativeSinusoids&) { return false; },
                               [](const AbsoluteSinusoids&) { return true; },
                               [](const PositionTable&) { return true; },
                               [](const NoPositions&) { return false; }},
                    positions);
}

// The seven activation quantisers of one layer. The comments begin with MicroNet's names for them.
struct TransformerLayerQuantisers {
  ActivationQuantiser attention_input;  // quant_ln1: input of qkv
  ActivationQuantiser qkv;              // quant_qkv: queries (content bias added), keys and values
  ActivationQuantiser weights;          // quant_attn: attention weights after the softmax
  ActivationQuantiser attended;         // quant_attnv: weighted values, input of `out`
  ActivationQuantiser inner_input;      // quant_ln2: input of `inner`
  ActivationQuantiser inner;            // fc.1: after the activation, input of `outer`
  ActivationQuantiser outer;            // fc.4: output of `outer` before the residual sum
};

// The five activation quantisers of a layer's cross-attention.
struct CrossAttentionQuantisers {
  ActivationQuantiser input;      // normalised target token: input of query_weight
  ActivationQuantiser query;      // queries
  ActivationQuantiser key_value;  // keys and values of the source
  ActivationQuantiser weights;    // attention weights after the softmax
  ActivationQuantiser attended;   // weighted values, input of `out`
};

// Attention of a decoder's layer over the encoded source (encoder-decoder attention), between the
// layer's self-attention and its inner layer, with the layer's norm order. Letters as for
// TransformerLayer; e = the encoder's width.
struct CrossAttention {
  TensorId norm_gain, norm_bias;       // [d]
  TensorId query_weight;               // [H key_size, d]
  std::optional<TensorId> query_bias;  // [rows of query_weight]
  TensorId key_value_weight;           // [H (key_size + value_size), e]: per head rows of k, of v
  std::optional<TensorId> key_value_bias;              // [rows of key_value_weight]
  TensorId out_weight;                                 // [d, H value_size]
  std::optional<TensorId> out_bias;                    // [d]
  std::optional<CrossAttentionQuantisers> quantisers;  // present iff the layer's own are
};

// One layer of a TransformerDecoder: self-attention, then the inner (feed-forward) layer. d =
// width, H = heads, i = rows of inner_weight.
struct TransformerLayer {
  // [d]; absent with NormOrder::kEnd, like the inner layer's norm.
  std::optional<TensorId> attention_norm_gain, attention_norm_bias;
  TensorId qkv_weight;               // [H (2 key_size + value_size), d]: per head
                                     // rows of q, of k, of v
  std::optional<TensorId> qkv_bias;  // [rows of qkv_weight]
  // SlotPositions: [key_size, window], a column per slot. RelativeSinusoids: [H key_size, d].
  // Absent for all others.
  std::optional<TensorId> positions;
  // u and w of RelativeSinusoids, [H, key_size]; absent for all others. Layers may share them.
  std::optional<TensorId> content_bias, position_bias;
  // The contents of slots before the stream's first token: keys [H, key_size], then values
  // [H, value_size]. Only with StreamStart::kZeros, NormOrder::kPre and RelativeSinusoids, where
  // the norm turns a memory of zeros into its bias. Absent: zeros.
  std::optional<TensorId> start;                             // [H (key_size + value_size)]
  TensorId out_weight;                                       // [d, H value_size]
  std::optional<TensorId> out_bias;                          // [d]
  std::optional<TensorId> inner_norm_gain, inner_norm_bias;  // [d]
  TensorId inner_weight, inner_bias;                     // [i, d], [i]; the activation after them
  TensorId outer_weight, outer_bias;                     // [d, i], [d]
  std::optional<TransformerLayerQuantisers> quantisers;  // in all layers or in none
  // Present iff the model has an encoder, then in every layer of the decoder.
  std::optional<CrossAttention> cross_attention;
  std::optional<double> end_epsilon = {};  // of the norm of NormOrder::kEnd; absent for all others
};

// A stack of attention and feed-forward layers that reads a window of tokens: Transformer-XL,
// MicroNet's decoder (Yan et al. 2020, "MicroNet for Efficient Language Modeling"), fairseq's and
// OpenNMT's decoders.
struct TransformerDecoder {
  std::string name;
  uint32_t width, heads, key_size, value_size;
  // Slots that a token attends to; the token itself is in the last slot. With absolute positions
  // also the number of positions (max_positions): the token after the last position starts again
  // with position 0 and an empty window.
  uint32_t window;
  StreamStart start;  // absolute positions: kMasked
  NormOrder norm_order;
  double epsilon;  // of every norm
  Positions positions;
  std::vector<TransformerLayer> layers;
  std::optional<TensorId> final_norm_gain, final_norm_bias;  // [d], both or none
  // Quantiser of the final hidden state; present iff the layers have quantisers.
  std::optional<ActivationQuantiser> output;
  Activation activation = Activation::kRelu;  // of every layer's inner layer
  // No token attends to tokens with this id, unless all tokens in its window have this id: then
  // nothing is masked. Only with StreamStart::kMasked.
  std::optional<uint32_t> masked_token = {};
};

// The encoder of a translation model (Vaswani et al. 2017), which runs over the source before the
// first target token. The stack's layers are a decoder's, but each token attends to the complete
// source. The stack's window is the longest source; it has NormOrder::kPre, a final norm, a
// PositionTable and no cross-attention. The encoder has quantisers iff the decoder has; its output
// quantiser then applies to the vectors that the decoder's cross-attention computes keys and values
// from.
struct TransformerEncoder {
  std::string name;
  uint32_t vocabulary_size;     // words of the source language
  AdaptiveEmbedding embedding;  // of these words
  TransformerDecoder stack;
};

// The meaning of a masked model's scores.
enum class ScoredPart : uint8_t {
  kClasses = 0,       // the class of the text, by its pooled vector
  kNextSentence = 1,  // by the pooled vector: 0: the second text follows the first; 1: it does not
  kSpans = 2,         // by each token's vector: whether an answer starts there, and ends there
};
constexpr std::array<std::string_view, 3> NamesOf(ScoredPart /*kind*/) {
  return {"classes", "next_sentence", "spans"};
}

// A masked language model (Devlin et al. 2019, "BERT"), which reads a complete text at once. The
// vector of token t is LN(word + segment + position t), with the words of the model's embedding;
// the stack's layers follow, in which each token attends to all others. With dense output layers
// and a softmax the vector of a token gives the distribution of its word. The stack's window is the
// longest text; it has NormOrder::kPost, a PositionTable, no final norm and no cross-attention. The
// stack's output quantiser quantises the tokens' vectors.
struct MaskedModel {
  std::string name;
  AdaptiveEmbedding segments;     // rows of the segment numbers: 0 for the first text of a pair
  TensorId norm_gain, norm_bias;  // [d], d = width of the stack; epsilon is the stack's
  TransformerDecoder stack;
  std::optional<DenseLayer> pooler;  // [p, d]: first token's vector -> pooled vector
  // [n, p], which needs a pooler; or [2, d] for spans.
  std::optional<DenseLayer> scores;
  ScoredPart scored = ScoredPart::kClasses;
};

inline uint32_t SegmentsOf(const MaskedModel& model) { return model.segments.bins.front().size; }

// Which logits share a softmax.
enum class Normalisation : uint8_t {
  // One softmax over the head's words and the clusters, another over each tail's words:
  // log p(w in tail) = log p(cluster) + log p(w | cluster).
  kPerCluster = 0,
  // One softmax over all words. A cluster's logit is added to the logits of its tail's words and is
  // itself not part of the softmax.
  kWhole = 1,
};
constexpr std::array<std::string_view, 2> NamesOf(Normalisation /*kind*/) {
  return {"per_cluster", "whole"};
}

// A tail cluster, words [first, first + size). Their logits are table * (projection * h) + bias.
struct SoftmaxTail {
  uint32_t first;
  uint32_t size;
  uint32_t cluster_row;  // row of cluster_weight that gives this cluster's logit; each row once
  std::optional<TensorId> projection;  // [cols(table), width]; absent: cols(table) == width
  TensorId table;                      // [size, e]
  std::optional<TensorId> bias;        // [size]
};

// Adaptive softmax (Grave et al. 2017): a head cluster of frequent words, and tail clusters. The
// head's logits are those of its words, then those of the tail clusters. Without tails it is a full
// softmax; without words in the head a class-factored one (Goodman 2001) with a tail per class.
// Words are numbered in order: the head's, then each tail's.
struct AdaptiveSoftmax {
  std::string name;
  uint32_t width;
  uint32_t head_size;
  // Applied to the hidden state before head_table and cluster_weight; absent: e == width.
  std::optional<TensorId> head_projection;  // [e, width]
  std::optional<TensorId> head_table;       // [head_size, e]; present iff head_size > 0
  std::optional<TensorId> head_bias;        // [head_size]
  std::optional<TensorId> cluster_weight;   // [tails, e]; present iff there are tails
  std::optional<TensorId> cluster_bias;     // [tails]
  TailInput tail_input = TailInput::kAsIs;
  Normalisation normalisation = Normalisation::kPerCluster;
  std::vector<SoftmaxTail> tails;
};

// When a cache begins to contribute to the distribution.
enum class CacheStart : uint8_t {
  kFirstPair = 0,     // with its first pair (MicroNet); a session option is for the empty cache
  kPastCapacity = 1,  // after more than `capacity` pairs; before that the softmax alone (AWD-LSTM)
};
constexpr std::array<std::string_view, 2> NamesOf(CacheStart /*kind*/) {
  return {"first_pair", "past_capacity"};
}

// Neural cache (continuous cache, Grave et al. 2017): p = (1 - lambda) softmax + lambda cache. The
// cache contains the last `capacity` (hidden state, next word) pairs, weighted with
// softmax(theta * h . hidden state).
struct NeuralCache {
  std::string name;
  uint32_t capacity;  // > 0; a model without a cache has no such block
  double theta;       // > 0
  double lambda;      // in (0, 1)
  CacheStart start = CacheStart::kFirstPair;
};

// The hidden layer of a classifier: max(a x + s, 0), a dense layer, max(a' y + s', 0), with scales
// a and shifts s. Source: the text classifiers of Chen, Li & Sun 2020, "Differentiable Product
// Quantization" (DPQ). Batch normalisation with trained statistics has a = gamma /
// sqrt(variance + epsilon) and s = beta - mean a.
struct BagHiddenLayer {
  TensorId input_scale, input_shift;    // [f], f = the classifier's features
  TensorId weight;                      // [n, f]
  std::optional<TensorId> bias;         // [n]
  TensorId output_scale, output_shift;  // [n]
};

// Classifies a list of words (a bag of words). Its features are the mean of the words' embeddings
// and, with `max_pool`, after it the largest entry of each dimension: f = the embedding's width, or
// twice that.
struct BagClassifier {
  std::string name;
  uint32_t classes;
  // The word that pads lists: omitted from the mean, a vector of zeros for the maximum.
  std::optional<uint32_t> padding;
  bool max_pool;
  std::optional<BagHiddenLayer> hidden;
  TensorId weight;               // [classes, rows of the hidden layer's weight or f]
  std::optional<TensorId> bias;  // [classes]
};

using Block = std::variant<AdaptiveEmbedding, TransformerDecoder, AdaptiveSoftmax, NeuralCache,
                           RecurrentDecoder, BagClassifier, TransformerEncoder, DenseLayers,
                           RecurrentEncoder, MaskedModel>;

// The names of the kinds of blocks, in the order of the variant.
inline constexpr std::array<std::string_view, std::variant_size_v<Block>> kBlockKinds = {
    "adaptive_embedding", "transformer_decoder", "adaptive_softmax",    "neural_cache",
    "recurrent_decoder",  "bag_classifier",      "transformer_encoder", "dense_layers",
    "recurrent_encoder",  "masked_model"};

// Where the file came from: free text that no code interprets.
struct Provenance {
  std::string producer;       // "kinglet 0.1.0"
  std::string family;         // "neurips-micronet"
  std::string source;         // base name of the checkpoint
  std::string source_digest;  // XXH3-128 of the checkpoint's bytes, hexadecimal
  std::string options;        // the converter's options that shaped the model: "bits 9, calibrated"
};

// Golden values that the file contains; `kinglet verify` replays them in double precision and
// compares within `tolerance`. Feeding ids[0..i] gives log p(ids[i+1]) = log_probabilities[i]. In a
// model with a start token, feeding the start token and then ids[0..i-1] gives log p(ids[i]) =
// log_probabilities[i]. A masked model that reads the ids with `mask` in place of the id at
// positions[i] gives log p(ids[positions[i]]) = log_probabilities[i].
struct GoldenVector {
  std::vector<uint32_t> ids;              // n >= 2; with a start token, or masked, n >= 1
  std::vector<double> log_probabilities;  // n - 1; with a start token n; each <= 0
  double tolerance;
  // Source tokens that are encoded first; at least one iff the model has an encoder.
  std::vector<uint32_t> source_ids = {};
  // Only for masked models. segments: [n], or empty if all are 0. positions: one for each value,
  // ascending. mask: the id of [MASK].
  std::vector<uint32_t> segments = {}, positions = {};
  std::optional<uint32_t> mask = {};
};

// A complete model without the tensors' values and the vocabularies' strings.
struct ModelDescription {
  Provenance provenance;
  uint32_t vocabulary_size = 0;
  // The token that training fed before every text, so that the text's first token is predicted too
  // (fairseq's </s>). Absent: a stream begins with the text. Only language models may have one,
  // translation models must.
  std::optional<uint32_t> start_token;
  // The token that training predicted at the end of every text or sentence. Only language models
  // may have one. Absent: the framework has none, or the file does not state it.
  std::optional<uint32_t> end_token;
  // One of: a language model (exactly one embedding, decoder and softmax, at most one cache); a
  // translation model (one embedding and softmax, and either TransformerEncoder and
  // TransformerDecoder or RecurrentEncoder and RecurrentDecoder); an embedding alone; an embedding
  // and a classifier; a masked model (an embedding and a MaskedModel, perhaps dense output layers,
  // and a softmax).
  std::vector<Block> blocks;
  std::optional<GoldenVector> golden;  // models that predict words only
};

inline const std::string& NameOf(const Block& block) {
  return std::visit([](const auto& kind) -> const std::string& { return kind.name; }, block);
}

// The block of type T, or nullptr.
template <class T>
const T* FindBlock(const ModelDescription& description) {
  for (const Block& block : description.blocks) {
    if (const T* found = std::get_if<T>(&block)) return found;
  }
  return nullptr;
}
template <class T>
T* FindBlock(ModelDescription& description) {
  return const_cast<T*>(FindBlock<T>(static_cast<const ModelDescription&>(description)));
}

// The properties that every kind of encoder has.
struct SourceSide {
  uint32_t vocabulary_size;            // words of the source
  const AdaptiveEmbedding* embedding;  // of these words
  uint32_t window;                     // tokens of the longest source
};
// Returns nullopt for a model without an encoder.
inline std::optional<SourceSide> FindSource(const ModelDescription& description) {
  if (const auto* encoder = FindBlock<TransformerEncoder>(description)) {
    return SourceSide{encoder->vocabulary_size, &encoder->embedding, encoder->stack.window};
  }
  if (const auto* encoder = FindBlock<RecurrentEncoder>(description)) {
    return SourceSide{encoder->vocabulary_size, &encoder->embedding, encoder->window};
  }
  return std::nullopt;
}
inline bool HasEncoder(const ModelDescription& description) {
  return FindSource(description).has_value();
}

// Number of words of the encoder's source; 0 without an encoder.
inline uint32_t SourceVocabularySize(const ModelDescription& description) {
  const auto source = FindSource(description);
  return source ? source->vocabulary_size : 0;
}

// max_positions: how many tokens a stream has positions for before it starts again at 0
// (TransformerDecoder::window). nullopt: no limit.
inline std::optional<uint32_t> PositionsOf(const ModelDescription& description) {
  const auto* decoder = FindBlock<TransformerDecoder>(description);
  if (decoder == nullptr || !IsAbsolute(decoder->positions)) return std::nullopt;
  return decoder->window;
}

// Whether the model reads complete texts, and predicts their masked words or scores the texts.
inline bool IsMaskedModel(const ModelDescription& description) {
  return FindBlock<MaskedModel>(description) != nullptr;
}

// Whether the model predicts the word that follows; otherwise it is a masked model, or an
// embedding, perhaps with a classifier.
inline bool IsLanguageModel(const ModelDescription& description) {
  if (IsMaskedModel(description)) return false;
  return std::any_of(description.blocks.begin(), description.blocks.end(), [](const Block& block) {
    return std::visit(
        Overloaded{
            [](const AdaptiveEmbedding&) { return false; },
            [](const BagClassifier&) { return false; },
            [](const TransformerDecoder&) { return true; },
            [](const RecurrentDecoder&) { return true; },
            [](const AdaptiveSoftmax&) { return true; }, [](const NeuralCache&) { return true; },
            [](const TransformerEncoder&) { return true; }, [](const DenseLayers&) { return true; },
            [](const RecurrentEncoder&) { return true; }, [](const MaskedModel&) { return false; }},
        block);
  });
}

// The dense layers of `place`, or nullptr.
inline const DenseLayers* FindDenseLayers(const ModelDescription& description, DensePlace place) {
  for (const Block& block : description.blocks) {
    const auto* layers = std::get_if<DenseLayers>(&block);
    if (layers != nullptr && layers->place == place) return layers;
  }
  return nullptr;
}

}  // namespace kinglet

#endif  // KINGLET_FORMAT_BLOCKS_H_

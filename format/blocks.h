// What a model is made of: the block axis of the library. Blocks, not operations, are stored in the
// file, so lowering (runtime/lower) can improve without reconverting. These are plain values; the
// reader fills them from a verified file, converters fill them for the writer.
//
// A TensorId indexes the file's tensor directory. The reader has checked every id, shape and
// relation that the comments below state, so code after it may rely on them.
#ifndef KINGLET_FORMAT_BLOCKS_H_
#define KINGLET_FORMAT_BLOCKS_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "format/define_unit.h"
#include "format/encoding.h"

namespace kinglet {

// y = round_half_even(clamp(x, -max_abs, max_abs) / step) * step, x/0 never happens: both are
// finite and > 0 (docs/NUMERICS.md, "Activations"). Source: distiller's symmetric linear quantiser
// as MicroNet uses it.
struct ActivationQuantiser {
  float max_abs;
  float step;
};

// Words [first, first + size) have rows of `table`; a projection, where present, maps a row (cols
// of the table) to the width of the bins: projection is [width, cols(table)]. Without one,
// cols(table) == width. The bins' width is the embedding's, or, where a DeFINE unit comes after
// them, its map_width.
struct EmbeddingBin {
  uint32_t first;
  uint32_t size;
  TensorId table;
  std::optional<TensorId> projection;
  // How many tokens of a text of the model's kind lie in the bin, for measuring with made-up ids; 0
  // in every bin: not known. Computes nothing.
  uint64_t tokens = 0;
  double scale = 1;  // multiplies the (projected) row
};

// The values of one layer of a DeFINE unit, of ShapesOf(layer).
struct DefineTensors {
  TensorId weight;  // not coded
  std::optional<TensorId> bias, norm_gain, norm_offset;
};

// A DeFINE unit that stays in the file: its output for a word is computed when a stream first needs
// it, and then kept in a cache of the stream.
struct KeptDefineUnit {
  DefineUnit unit;
  std::vector<DefineTensors> tensors;  // of the unit's layers
  uint32_t cache_rows;                 // of a stream, at most; at least 1
};

// Adaptive input representations (Baevski & Auli 2019); one bin is an ordinary embedding. Bins are
// adjacent, start at word 0 and cover the vocabulary. With a DeFINE unit the bins are its Map.
struct AdaptiveEmbedding {
  std::string name;
  uint32_t width;  // of the bins' rows, or of the unit's output
  double scale;    // multiplies the row or the output; sqrt(width) in most Transformers, else 1
  std::vector<EmbeddingBin> bins;
  std::optional<KeptDefineUnit> define = {};
};

// What attention sees in window slots older than the first token of a stream.
enum class StreamStart : uint8_t {
  kMasked = 0,  // nothing: those slots have no weight
  // Keys and values of zeros that take part in the softmax (MicroNet's quantised network, the zero
  // memory of TransfoXL), or those of `TransformerLayer::start`.
  kZeros = 1,
};

// Where a layer normalises, for f the attention and the inner layer in turn.
enum class NormOrder : uint8_t {
  kPre = 0,   // x + f(LN(x))
  kPost = 1,  // LN(x + f(x))
};

// The alternatives of Positions: where a token's place enters. t: index of the token; D: how many
// tokens a key is older than the query.

// Each layer has a trained column for each window slot, which all heads share:
// score += q . column / sqrt(key_size) (Yan et al. 2020).
struct SlotPositions {};

// Dai et al. 2019, "Transformer-XL", section 3.3, with a query's two biases u and w:
// score = ((q + u) . k + (q + w) . r_D) / sqrt(key_size), r_D = `positions` of the layer times
// R(D), R(D) = [sin(D f_0), .., sin(D f_n), cos(D f_0), .., cos(D f_n)], f = frequencies.
struct RelativeSinusoids {
  TensorId frequencies;           // [width / 2], float32, each in [0, kMaxFrequency]
  std::optional<uint32_t> clamp;  // a larger D counts as this
};

// To the scaled embedding are added the sines and then the cosines of (first + t) f_j, angle and
// function value rounded to float32 as in fairseq's table.
struct AbsoluteSinusoids {
  TensorId frequencies;  // [width / 2], float32, each in [0, kMaxFrequency]
  uint32_t first;        // fairseq: 2, the index of its padding word and one more
};

// To the scaled embedding is added row t.
struct PositionTable {
  TensorId table;  // [window, width]
};

using Positions = std::variant<SlotPositions, RelativeSinusoids, AbsoluteSinusoids, PositionTable>;

// Positions of tokens rather than distances. A stream has no more of them than the window.
inline bool IsAbsolute(const Positions& positions) {
  return std::holds_alternative<AbsoluteSinusoids>(positions) ||
         std::holds_alternative<PositionTable>(positions);
}

// The seven activation quantisers of one layer; in comments MicroNet's names of them.
struct TransformerLayerQuantisers {
  ActivationQuantiser attention_input;  // quant_ln1: input of qkv
  ActivationQuantiser qkv;              // quant_qkv: queries (content bias added), keys and values
  ActivationQuantiser weights;          // quant_attn: attention weights after the softmax
  ActivationQuantiser attended;         // quant_attnv: weighted values, input of `out`
  ActivationQuantiser inner_input;      // quant_ln2: input of `inner`
  ActivationQuantiser inner;            // fc.1: after ReLU, input of `outer`
  ActivationQuantiser outer;            // fc.4: output of `outer` before the residual sum
};

// The five activation quantisers of a layer's attention to the source.
struct CrossAttentionQuantisers {
  ActivationQuantiser input;      // normalised target token: input of the queries' product
  ActivationQuantiser query;      // queries
  ActivationQuantiser key_value;  // keys and values of the source
  ActivationQuantiser weights;    // attention weights after the softmax
  ActivationQuantiser attended;   // weighted values, input of `out`
};

// Attention of a decoder's layer over the encoded source, between its attention over the target and
// its inner layer, normalised as they are. The names are the layer's; e = the encoder's width.
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

// d = width, H = heads, i = rows of inner_weight.
struct TransformerLayer {
  TensorId attention_norm_gain, attention_norm_bias;  // [d]
  TensorId qkv_weight;                                // [H (2 key_size + value_size), d]: per head
                                                      // rows of q, of k, of v
  std::optional<TensorId> qkv_bias;                   // [rows of qkv_weight]
  // SlotPositions: [key_size, window], a column a slot. RelativeSinusoids: [H key_size, d]. Absent
  // for all others.
  std::optional<TensorId> positions;
  // u and w of RelativeSinusoids, [H, key_size]; absent for all others. Layers may share them.
  std::optional<TensorId> content_bias, position_bias;
  // What the slots before the stream hold: keys [H, key_size], then values [H, value_size]. Only
  // where the stream starts with zeros, the norm comes first and positions are RelativeSinusoids:
  // there a normalised zero is the norm's bias. Absent: zeros.
  std::optional<TensorId> start;                         // [H (key_size + value_size)]
  TensorId out_weight;                                   // [d, H value_size]
  std::optional<TensorId> out_bias;                      // [d]
  TensorId inner_norm_gain, inner_norm_bias;             // [d]
  TensorId inner_weight, inner_bias;                     // [i, d], [i]; ReLU after them
  TensorId outer_weight, outer_bias;                     // [d, i], [d]
  std::optional<TransformerLayerQuantisers> quantisers;  // all layers have them or none has
  // In every layer of a decoder beside an encoder, and in no other.
  std::optional<CrossAttention> cross_attention;
};

// A stack of attention and feed-forward layers that sees a window of tokens: Transformer-XL,
// MicroNet's decoder (Yan et al. 2020, "MicroNet for Efficient Language Modeling"), fairseq's and
// OpenNMT's decoders.
struct TransformerDecoder {
  std::string name;
  uint32_t width, heads, key_size, value_size;
  // Slots a token attends to, itself in the last one. With absolute positions it is also their
  // number, and the token after the last starts anew with position 0 and an empty window.
  uint32_t window;
  StreamStart start;  // absolute positions: kMasked
  NormOrder norm_order;
  double epsilon;  // of every norm
  Positions positions;
  std::vector<TransformerLayer> layers;
  std::optional<TensorId> final_norm_gain, final_norm_bias;  // [d], both or none
  // Of the final hidden state; present iff the layers' are.
  std::optional<ActivationQuantiser> output;
};

// What the source of a translation becomes before the first target token (Vaswani et al. 2017):
// layers as a decoder's, in which each token sees all of the source. The stack's window is the
// longest source, its norm comes first and it has a final one, its positions are a PositionTable,
// it has no cross-attention, and it has quantisers iff the decoder has them; that of its output is
// of the vectors that the decoder's keys and values are made of.
struct TransformerEncoder {
  std::string name;
  uint32_t vocabulary_size;     // words of the source language
  AdaptiveEmbedding embedding;  // of them
  TransformerDecoder stack;
};

// What a recurrent layer computes from its input x, its own previous output h and its cell state c;
// s is the logistic sigmoid, W and U the input and recurrent weights, b and d their biases. Blocks
// of rows, one for each gate, lie one after the other.
enum class RecurrentCell : uint8_t {
  kLstm = 0,  // i, f, g, o: a = W x + b + U h + d; c = s(f) c + s(i) tanh(g); h = s(o) tanh(c)
  kGru = 1,   // r, z, m: m = tanh(W x + b + s(r) (U h + d)); h = (1 - s(z)) m + s(z) h
  kTanh = 2,  // h = tanh(W x + b + U h + d)
  kRelu = 3,  // h = max(W x + b + U h + d, 0)
  // z, f, o: a = W x + b + U x', x' the previous token's x; c = s(f) tanh(z) + (1 - s(f)) c;
  // h = s(o) c (Bradbury et al. 2016)
  kQrnn = 4,
};

// Rows of the weights for each unit.
inline uint32_t GatesOf(RecurrentCell cell) {
  switch (cell) {
    case RecurrentCell::kLstm:
      return 4;
    case RecurrentCell::kGru:
    case RecurrentCell::kQrnn:
      return 3;
    case RecurrentCell::kTanh:
    case RecurrentCell::kRelu:
      return 1;
  }
  return 1;
}

// n = units, m = units of the layer before, or the decoder's inputs; G = GatesOf(cell).
struct RecurrentLayer {
  RecurrentCell cell;
  uint32_t units;
  TensorId input_weight;               // [G n, m]
  std::optional<TensorId> input_bias;  // [G n]
  // U: [G n, n]; of a QRNN [G n, m], and absent where its window is one token.
  std::optional<TensorId> recurrent_weight;
  std::optional<TensorId> recurrent_bias;  // [G n]; a QRNN has none
  // Of the layer's output on its way into matrix products; all layers have one or none has, and the
  // decoder's input has one iff they have.
  std::optional<ActivationQuantiser> output;
};

// Recurrent layers, each fed with the output of the one before, the first with the embedding. All
// states start as zeros. The last layer's output is the model's hidden state.
struct RecurrentDecoder {
  std::string name;
  uint32_t inputs;                           // the embedding's width
  std::optional<ActivationQuantiser> input;  // of the embedding
  std::vector<RecurrentLayer> layers;
};

// How a projected hidden state enters the products with tables and cluster rows.
enum class TailInput : uint8_t {
  kAsIs = 0,
  kFixedPoint15 = 1,  // rounded to 15-bit fixed point, except in ref64 (docs/NUMERICS.md, rule 2)
};

// Which logits share a softmax.
enum class Normalisation : uint8_t {
  // The head's words and the clusters one, each tail's words one of their own:
  // log p(w in tail) = log p(cluster) + log p(w | cluster).
  kPerCluster = 0,
  // All words one. The cluster's logit is added to those of the tail's words and is none itself.
  kWhole = 1,
};

// Words [first, first + size): their logits are table * (projection * h) + bias.
struct SoftmaxTail {
  uint32_t first;
  uint32_t size;
  uint32_t cluster_row;  // row of `clusters_*` that is this tail's logit; a permutation
  std::optional<TensorId> projection;  // [cols(table), width]; absent: cols(table) == width
  TensorId table;                      // [size, e]
  std::optional<TensorId> bias;        // [size]
};

// Adaptive softmax (Grave et al. 2017). The head's logits are its words followed by the cluster
// rows; no tails: a full softmax; no words in the head: a class-factored one (Goodman 2001), a tail
// for each class. Words are covered in order: head, then tails, so those of a class lie together.
struct AdaptiveSoftmax {
  std::string name;
  uint32_t width;
  uint32_t head_size;
  // Of the hidden state on its way to head_table and cluster_weight; absent: e == width.
  std::optional<TensorId> head_projection;  // [e, width]
  std::optional<TensorId> head_table;       // [head_size, e]; present iff head_size > 0
  std::optional<TensorId> head_bias;        // [head_size]
  std::optional<TensorId> cluster_weight;   // [tails, e]; present iff there are tails
  std::optional<TensorId> cluster_bias;     // [tails]
  TailInput tail_input = TailInput::kAsIs;
  Normalisation normalisation = Normalisation::kPerCluster;
  std::vector<SoftmaxTail> tails;
};

// When a cache begins to take part in the distribution.
enum class CacheStart : uint8_t {
  kFirstPair = 0,  // with its first pair; what an empty one does is the session's choice (MicroNet)
  kPastCapacity = 1,  // when more than `capacity` pairs were seen, softmax alone before (AWD-LSTM)
};

// Neural cache (Grave et al. 2016): p = (1 - lambda) softmax + lambda cache, cache weights
// softmax(theta * h . key) over the last `capacity` (hidden, next word) pairs.
struct NeuralCache {
  std::string name;
  uint32_t capacity;  // > 0; a model without a cache has no such block
  double theta;       // > 0
  double lambda;      // in (0, 1)
  CacheStart start = CacheStart::kFirstPair;
};

// The hidden layer of a classifier: max(a x + s, 0), a dense layer, max(a' y + s', 0). Source: the
// text classifiers of Chen, Li & Sun 2020, "Differentiable Product Quantization"; batch
// normalisation with its trained statistics is a = gamma / sqrt(variance + epsilon) and
// s = beta - mean a.
struct BagHiddenLayer {
  TensorId input_scale, input_shift;    // [f], f = the classifier's features
  TensorId weight;                      // [n, f]
  std::optional<TensorId> bias;         // [n]
  TensorId output_scale, output_shift;  // [n]
};

// Classes of a list of words from the mean of their vectors (a bag of words), followed by the
// largest entry in each dimension where `max_pool`: f = width of the embedding, or twice that.
struct BagClassifier {
  std::string name;
  uint32_t classes;
  // A word that fills lists up: not in the mean, and a vector of zeros to the maximum.
  std::optional<uint32_t> padding;
  bool max_pool;
  std::optional<BagHiddenLayer> hidden;
  TensorId weight;               // [classes, rows of the hidden layer's weight or f]
  std::optional<TensorId> bias;  // [classes]
};

using Block = std::variant<AdaptiveEmbedding, TransformerDecoder, AdaptiveSoftmax, NeuralCache,
                           RecurrentDecoder, BagClassifier, TransformerEncoder>;

// Where the file came from; free text, never interpreted.
struct Provenance {
  std::string producer;       // "kinglet 0.1.0"
  std::string family;         // "neurips-micronet"
  std::string source;         // base name of the checkpoint
  std::string source_digest;  // XXH3-128 of the checkpoint's bytes, hexadecimal
  std::string options;        // the converter's options that shaped the model: "bits 9, calibrated"
};

// Known answers carried in the file, in double precision within `tolerance`; `kinglet verify`
// replays them. Feeding ids[0..i] gives log p(ids[i+1]) = log_probabilities[i]. In a model with a
// start token, feeding that and then ids[0..i-1] gives log p(ids[i]) = log_probabilities[i].
struct GoldenVector {
  std::vector<uint32_t> ids;              // n >= 2; n >= 1 behind a start token
  std::vector<double> log_probabilities;  // n - 1, or n behind a start token; each <= 0
  double tolerance;
  std::vector<uint32_t> source_ids =
      {};  // encoded before them; at least one iff there is an encoder
};

// A whole model but for the tensors' values and the vocabulary's strings.
struct ModelDescription {
  Provenance provenance;
  uint32_t vocabulary_size = 0;
  // Of a language model: what its training fed first in every text, so that the text's first token
  // is predicted too (fairseq's </s>). Absent: a stream begins with the text. A translation model
  // has one.
  std::optional<uint32_t> start_token;
  // A language model: exactly one embedding, softmax and decoder (of any kind), at most one cache.
  // A translation model: also one encoder, and the decoder a TransformerDecoder; no cache. Or an
  // embedding alone, or an embedding and a classifier.
  std::vector<Block> blocks;
  std::optional<GoldenVector> golden;  // of a language model
};

// The block of type T, or null.
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

// Words of the encoder's source; 0 without an encoder.
inline uint32_t SourceVocabularySize(const ModelDescription& description) {
  const auto* encoder = FindBlock<TransformerEncoder>(description);
  return encoder == nullptr ? 0 : encoder->vocabulary_size;
}

// How many tokens the positions of a stream count before they begin anew
// (TransformerDecoder::window); none: a stream has no end.
inline std::optional<uint32_t> PositionsOf(const ModelDescription& description) {
  const auto* decoder = FindBlock<TransformerDecoder>(description);
  if (decoder == nullptr || !IsAbsolute(decoder->positions)) return std::nullopt;
  return decoder->window;
}

// Whether it has what predicts words; otherwise it is an embedding, perhaps with a classifier.
inline bool IsLanguageModel(const ModelDescription& description) {
  return std::any_of(description.blocks.begin(), description.blocks.end(), [](const Block& block) {
    return !std::holds_alternative<AdaptiveEmbedding>(block) &&
           !std::holds_alternative<BagClassifier>(block);
  });
}

}  // namespace kinglet

#endif  // KINGLET_FORMAT_BLOCKS_H_

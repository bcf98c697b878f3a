// What a model is made of: the block axis of the library. Blocks, not operations, are stored in the
// file, so lowering (runtime/lower) can improve without reconverting. These are plain values; the
// reader fills them from a verified file, converters fill them for the writer.
//
// A TensorId indexes the file's tensor directory. The reader has checked every id, shape and
// relation that the comments below state, so code after it may rely on them.
#ifndef KINGLET_FORMAT_BLOCKS_H_
#define KINGLET_FORMAT_BLOCKS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace kinglet {

using TensorId = uint32_t;

// y = round_half_even(clamp(x, -max_abs, max_abs) / step) * step, x/0 never happens: both are
// finite and > 0 (docs/NUMERICS.md, "Activations"). Source: distiller's symmetric linear quantiser
// as MicroNet uses it.
struct ActivationQuantiser {
  float max_abs;
  float step;
};

// Words [first, first + size) have rows of `table`; a projection, where present, maps a row (cols
// of the table) to the model width: projection is [width, cols(table)]. Without one, cols(table) ==
// width.
struct EmbeddingBin {
  uint32_t first;
  uint32_t size;
  TensorId table;
  std::optional<TensorId> projection;
  // How many tokens of a text of the model's kind lie in the bin, for measuring with made-up ids; 0
  // in every bin: not known. Computes nothing.
  uint64_t tokens = 0;
};

// Adaptive input representations (Baevski & Auli 2019); one bin is an ordinary embedding. Bins are
// adjacent, start at word 0 and cover the vocabulary.
struct AdaptiveEmbedding {
  std::string name;
  uint32_t width;
  double scale;  // multiplies the (projected) row; sqrt(width) in most Transformers, 1 elsewhere
  std::vector<EmbeddingBin> bins;
};

// What attention sees in window slots older than the first token of a stream.
enum class StreamStart : uint8_t {
  kMasked = 0,  // nothing: those slots have no weight
  kZeros = 1,   // zero keys and values that take part in the softmax (MicroNet's quantised network)
};

// The seven activation quantisers of one layer (spec of quantize.py: names in comments).
struct MicronetLayerQuantisers {
  ActivationQuantiser norm1;     // quant_ln1: input of qkv
  ActivationQuantiser qkv;       // quant_qkv: queries, keys and values
  ActivationQuantiser weights;   // quant_attn: attention weights after the softmax
  ActivationQuantiser attended;  // quant_attnv: weighted values, input of `out`
  ActivationQuantiser norm2;     // quant_ln2: input of fc.0
  ActivationQuantiser inner;     // fc.1: after ReLU, input of fc.3
  ActivationQuantiser outer;     // fc.4: fc.3's output before the residual sum
};

// One pre-norm layer of MicroNet's decoder (Yan et al. 2020, "MicroNet for Efficient Language
// Modeling"). d = width, H = heads, inner = rows of fc0.
struct MicronetLayer {
  TensorId norm1_gain, norm1_bias;  // [d]
  TensorId qkv_weight,
      qkv_bias;         // [H * (2 key_size + value_size), d]: per head q, k, v; bias [rows]
  TensorId positions;   // [key_size, window]: column = window slot, shared by all heads
  TensorId out_weight;  // [d, H * value_size]
  TensorId norm2_gain, norm2_bias;                    // [d]
  TensorId fc0_weight, fc0_bias;                      // [inner, d], [inner]
  TensorId fc3_weight, fc3_bias;                      // [d, inner], [d]
  std::optional<MicronetLayerQuantisers> quantisers;  // all layers have them or none has
};

// Sliding-window decoder: each token attends to `window` slots, itself in the last one.
struct MicronetDecoder {
  std::string name;
  uint32_t width, heads, key_size, value_size;
  uint32_t window;  // n_seq + 1
  StreamStart start;
  std::vector<MicronetLayer> layers;
  std::optional<ActivationQuantiser>
      output;  // `quant`: the final hidden state; present iff the layers' are
};

// How the projected hidden state enters a tail's product.
enum class TailInput : uint8_t {
  kAsIs = 0,
  kFixedPoint15 = 1,  // rounded to 15-bit fixed point, except in ref64 (docs/NUMERICS.md, rule 2)
};

// Words [first, first + size): log p = log p(cluster) + log softmax(table * (projection * h) +
// bias).
struct SoftmaxTail {
  uint32_t first;
  uint32_t size;
  uint32_t cluster_row;  // row of `clusters_*` that is this tail's logit; a permutation
  std::optional<TensorId> projection;  // [cols(table), width]; absent: cols(table) == width
  TensorId table;                      // [size, e]
  std::optional<TensorId> bias;        // [size]
};

// Adaptive softmax (Grave et al. 2017). The head's logits are its words followed by the cluster
// rows; no tails: a full softmax. Words are covered in order: head, then tails.
struct AdaptiveSoftmax {
  std::string name;
  uint32_t width;
  uint32_t head_size;
  TensorId head_table;                     // [head_size, width]
  std::optional<TensorId> head_bias;       // [head_size]
  std::optional<TensorId> cluster_weight;  // [tails, width]; present iff there are tails
  std::optional<TensorId> cluster_bias;    // [tails]
  TailInput tail_input;
  std::vector<SoftmaxTail> tails;
};

// Neural cache (Grave et al. 2016): p = (1 - lambda) softmax + lambda cache, cache weights
// softmax(theta * h . key) over the last `capacity` (hidden, next word) pairs.
struct NeuralCache {
  std::string name;
  uint32_t capacity;  // > 0; a model without a cache has no such block
  double theta;       // > 0
  double lambda;      // in (0, 1)
};

using Block = std::variant<AdaptiveEmbedding, MicronetDecoder, AdaptiveSoftmax, NeuralCache>;

// Where the file came from; free text, never interpreted.
struct Provenance {
  std::string producer;       // "kinglet 0.1.0"
  std::string family;         // "neurips-micronet"
  std::string source;         // base name of the checkpoint
  std::string source_digest;  // XXH3-128 of the checkpoint's bytes, hexadecimal
  std::string options;        // the converter's options that shaped the model: "bits 9, calibrated"
};

// Known answers carried in the file: feeding ids[0..i] gives log p(ids[i+1]) = log_probabilities[i]
// in double precision within `tolerance`. Replayed by `kinglet verify`.
struct GoldenVector {
  std::vector<uint32_t> ids;              // n >= 2
  std::vector<double> log_probabilities;  // n - 1, each <= 0
  double tolerance;
};

// A whole model but for the tensors' values and the vocabulary's strings.
struct ModelDescription {
  Provenance provenance;
  uint32_t vocabulary_size = 0;
  std::vector<Block> blocks;  // exactly one embedding, decoder and softmax; at most one cache
  std::optional<GoldenVector> golden;
};

// The block of type T, or null.
template <class T>
const T* FindBlock(const ModelDescription& description) {
  for (const Block& block : description.blocks) {
    if (const T* found = std::get_if<T>(&block)) return found;
  }
  return nullptr;
}

}  // namespace kinglet

#endif  // KINGLET_FORMAT_BLOCKS_H_

// The blocks of recurrent networks (format/blocks.h): decoders, their attention, and encoders.
#ifndef KINGLET_FORMAT_RECURRENT_BLOCKS_H_
#define KINGLET_FORMAT_RECURRENT_BLOCKS_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/embedding_blocks.h"
#include "format/encoding.h"

namespace kinglet {

// The function of a recurrent layer's input x, its own previous output h and its cell state c; s is
// the logistic sigmoid, W and U the input and recurrent weights, b and d their biases. A
// weight has a group of rows for each gate, in the order in which the gates are named here.
enum class RecurrentCell : uint8_t {
  kLstm = 0,  // i, f, g, o: a = W x + b + U h + d; c = s(f) c + s(i) tanh(g); h = s(o) tanh(c)
  kGru = 1,   // r, z, m: m = tanh(W x + b + s(r) (U h + d)); h = (1 - s(z)) m + s(z) h
  kTanh = 2,  // h = tanh(W x + b + U h + d)
  kRelu = 3,  // h = max(W x + b + U h + d, 0)
  // z, f, o: a = W x + b + U x', x' the previous token's x; c = s(f) tanh(z) + (1 - s(f)) c;
  // h = s(o) c (Bradbury et al. 2016)
  kQrnn = 4,
};
constexpr std::array<std::string_view, 5> NamesOf(RecurrentCell /*kind*/) {
  return {"lstm", "gru", "tanh", "relu", "qrnn"};
}

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

// Makes an LSTM's output narrower (Sak et al. 2014; `proj_size` of torch.nn.LSTM): the layer's
// output, which is the h of its next token and the next layer's input, is the weight times h.
struct RecurrentProjection {
  uint32_t outputs;  // p
  TensorId weight;   // [p, n]
  // Quantises h; present iff the layer's output has a quantiser.
  std::optional<ActivationQuantiser> input;
};

// n = units, p = Outputs() = n without a projection, m = outputs of the layer before, or the
// decoder's inputs; G = GatesOf(cell).
struct RecurrentLayer {
  RecurrentCell cell;
  uint32_t units;
  TensorId input_weight;               // [G n, m]
  std::optional<TensorId> input_bias;  // [G n]
  // U: [G n, p]; of a QRNN [G n, m], absent where its window (filter width) is one token.
  std::optional<TensorId> recurrent_weight;
  std::optional<TensorId> recurrent_bias;  // [G n]; a QRNN has none
  // Quantises the layer's output where it enters matrix products. Either all layers and the
  // decoder's input have a quantiser, or no layer and not the input.
  std::optional<ActivationQuantiser> output;
  std::optional<RecurrentProjection> projection = {};  // an LSTM's, in a model without an encoder

  uint32_t Outputs() const { return projection ? projection->outputs : units; }
};

// How attention scores a vector m of the encoded source for a query q (Luong et al. 2015, section
// 3.1; kMlp: Bahdanau et al. 2015).
enum class AttentionScore : uint8_t {
  kDot = 0,      // m . q
  kGeneral = 1,  // m . (W q)
  kMlp = 2,      // v . tanh(W q + b + U m)
};
constexpr std::array<std::string_view, 3> NamesOf(AttentionScore /*kind*/) {
  return {"dot", "general", "mlp"};
}

// Global attention (Luong et al. 2015) of a recurrent decoder's output q to the vectors m of an
// encoded source, of the same width n. With c = sum of softmax(scores) m, the hidden state is
// tanh(out_weight [c ; q] + out_bias), without the tanh for kMlp.
struct GlobalAttention {
  AttentionScore score;
  std::optional<TensorId> query_weight;   // W: [n, n]; absent for kDot
  std::optional<TensorId> query_bias;     // b: [n]; kMlp only
  std::optional<TensorId> memory_weight;  // U: [n, n]; kMlp only
  std::optional<TensorId> score_weight;   // v: [1, n], not coded; kMlp only
  TensorId out_weight;                    // [n, 2 n]
  std::optional<TensorId> out_bias;       // [n]
  // Quantisers of W q (kGeneral), of the softmax (kDot and kGeneral), of [c ; q] and of the hidden
  // state, present iff the decoder's layers have quantisers. kMlp scores and adds in floats.
  std::optional<ActivationQuantiser> query = {}, weights = {}, joined = {}, output = {};
};

// Recurrent layers (LSTM, GRU, QRNN, Elman). Each layer reads the output of the layer before, the
// first layer the embedding. All states start as zeros, or, in a model with a RecurrentEncoder, as
// the encoder's last states. The last layer's output is the model's hidden state, unless there is
// attention.
struct RecurrentDecoder {
  std::string name;
  uint32_t inputs;                           // the embedding's width
  std::optional<ActivationQuantiser> input;  // of the first layer's input
  std::vector<RecurrentLayer> layers;
  // The first layer's input is the embedding and then the previous token's hidden state, for the
  // first token zeros (input feeding, Luong et al. 2015, section 3.3). Only with an encoder.
  bool input_feed = false;
  std::optional<GlobalAttention> attention = {};  // only with an encoder
};

// Maps the encoder's last states to the decoder's first states. The last states of all layers and
// directions, each of n elements, are concatenated layer by layer, forward before backward. The
// vector is split into as many equal parts x as there are directions, and each part becomes
// max(weight x + bias, 0). With L layers a part has n L elements.
struct EncoderBridge {
  TensorId hidden_weight;                          // [n L, n L]
  std::optional<TensorId> hidden_bias;             // [n L]
  std::optional<TensorId> cell_weight, cell_bias;  // LSTM cells only
};

// The encoder of a recurrent translation model (Bahdanau et al. 2015, Luong et al. 2015). Its
// layers run over the source before the first target token, in one direction or in both, each with
// states that start as zeros. The output of a layer is [forward ; backward], the next layer's
// input; the decoder attends to the last layer's outputs. The first state of a decoder's layer is
// [forward ; backward] of the encoder's layer's last states, after the last and after the first
// source token. Encoder and decoder therefore have the same number of layers, cells and units.
struct RecurrentEncoder {
  std::string name;
  uint32_t vocabulary_size;                  // words of the source language
  AdaptiveEmbedding embedding;               // of these words
  uint32_t window;                           // tokens of the longest source
  std::optional<ActivationQuantiser> input;  // of the embedding; present iff the decoder has one
  // Both directions of a layer have the same cell, units and quantiser; the last layer's quantises
  // the vectors that the decoder attends to. No QRNN. `backward` may be empty.
  std::vector<RecurrentLayer> forward, backward;
  std::optional<EncoderBridge> bridge;
};

}  // namespace kinglet

#endif  // KINGLET_FORMAT_RECURRENT_BLOCKS_H_

// Dense layers between the embedding and the decoder, or between the decoder and the softmax, of
// the language models of speech toolkits (ESPnet, SpeechBrain, icefall).
#ifndef KINGLET_FORMAT_DENSE_LAYERS_H_
#define KINGLET_FORMAT_DENSE_LAYERS_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/activation.h"
#include "format/encoding.h"

namespace kinglet {

// How a projected hidden state, or a hidden state of dense layers, enters the products with tables
// and cluster rows.
enum class TailInput : uint8_t {
  kAsIs = 0,
  kFixedPoint15 = 1,  // rounded to 15-bit fixed point, except in ref64 (docs/NUMERICS.md, rule 2)
};
constexpr std::array<std::string_view, 2> NamesOf(TailInput /*kind*/) {
  return {"as_is", "fixed15"};
}

// The normalisation of a dense layer's product.
enum class DenseNorm : uint8_t {
  kNone = 0,
  kLayer = 1,           // layer normalisation
  kRootMeanSquare = 2,  // y / sqrt(mean of y^2 + epsilon)
};
constexpr std::array<std::string_view, 3> NamesOf(DenseNorm /*kind*/) {
  return {"none", "layer", "root_mean_square"};
}

// y = activation(norm(W x + b)), or norm(activation(W x + b)), from m elements to n.
struct DenseLayer {
  TensorId weight;                    // [n, m], not coded
  std::optional<TensorId> bias = {};  // [n]
  DenseNorm norm = DenseNorm::kNone;
  std::optional<TensorId> norm_gain = {}, norm_bias = {};  // [n]; present iff kLayer
  double epsilon = 1e-5;                                   // of the norm
  Activation activation = Activation::kNone;
  bool norm_last = false;  // the norm follows the activation
};

enum class DensePlace : uint8_t {
  kInput = 0,   // between the embedding and the decoder
  kOutput = 1,  // between the decoder and the softmax: the last output is the hidden state
};
constexpr std::array<std::string_view, 2> NamesOf(DensePlace /*kind*/) {
  return {"input", "output"};
}

// Dense layers, each on the output of the layer before. A model has at most one such block in each
// place. A model with an encoder has no such block.
struct DenseLayers {
  std::string name;
  DensePlace place;
  TailInput input = TailInput::kAsIs;   // how vectors of floats enter the products
  std::vector<DenseLayer> layers = {};  // at least one
};

}  // namespace kinglet

#endif  // KINGLET_FORMAT_DENSE_LAYERS_H_

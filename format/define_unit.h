// A DeFINE unit as a list of layers (Mehta et al., "DeFINE: Deep Factorized Input Token
// Embeddings", ICLR 2020, section 3). Choices that the paper leaves open are fields. A recipe's
// JSON object for a layer has the fields of DefineLayer, and so has a layer in a model file.
//
// The Map layer gives a word's vector e, group linear transformations (GLT) widen it (Expand), and
// a last layer without groups narrows it (Reduce). Reduce is an ordinary layer of the list, so it
// may be omitted, or see e again by concatenation. tests/support/define_units.cc builds the units
// of the paper: linear, GLT, GLT with shuffle, HGT (hierarchical group transformation), with and
// without mixing connection and residuals.
#ifndef KINGLET_FORMAT_DEFINE_UNIT_H_
#define KINGLET_FORMAT_DEFINE_UNIT_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "format/activation.h"
#include "format/encoding.h"

namespace kinglet {

// One group linear transformation (GLT). Its input, which is the previous layer's output, joined
// with e as `skip` defines, is split into `groups` adjacent chunks. Each chunk is multiplied by its
// group's matrix, [out / groups, in / groups], and the products are concatenated. Bias,
// normalisation and activation follow in this order; `shuffle` and `residual` define where shuffle
// and residual are applied.
struct DefineLayer {
  enum class Weights : uint8_t {
    kPerGroup,  // a matrix per group (Mehta et al. 2018), stored one group after the other
    kShared,    // one matrix for all groups (DeFINE, appendix A.1)
  };
  enum class Bias : uint8_t {
    kNone,
    kPerGroup,  // [out]
    kShared,    // [out / groups], added to each group
  };
  // Feature j of group g becomes feature j * groups + g.
  enum class Shuffle : uint8_t { kNone, kBeforeNorm, kAfterNorm };
  // Layer normalisation: (x - mean) / sqrt(variance + epsilon) * gain + offset.
  enum class Norm : uint8_t {
    kNone,
    kWhole,     // over all features; gain and offset are [out]
    kPerGroup,  // over each of `groups` adjacent chunks; gain and offset are [out / groups], shared
  };
  using Activation = kinglet::Activation;  // kNone to kSigmoid
  // How e is joined to the previous layer's output (the unit's skip connection).
  enum class Skip : uint8_t {
    kNone,
    kConcatenate,  // the two vectors one after the other (Fig. 5d)
    kMix,          // for each group j, chunk j of the one, then chunk j of the other (Fig. 2)
  };
  // Which vector a skip puts first: e (the unit's input) or the previous layer's output.
  enum class Order : uint8_t { kInputFirst, kPreviousFirst };
  // The previous layer's output x is added (Fig. 5b); the widths must agree. A highway layer
  // (Srivastava et al. 2015, as fairseq's Highway) has 2 * out products [p; g] and gives
  // s(g) x + (1 - s(g)) activation(p), where s is the sigmoid; groups, norm, shuffle and skip do
  // not go with it.
  enum class Residual : uint8_t { kNone, kBeforeActivation, kAfterActivation, kHighway };

  uint64_t in = 0, out = 0;  // features; with a skip `in` includes e's features
  uint64_t groups = 1;
  Weights weights = Weights::kPerGroup;
  Bias bias = Bias::kPerGroup;
  Shuffle shuffle = Shuffle::kNone;
  Norm norm = Norm::kNone;
  double norm_epsilon = 1e-5;
  bool norm_gain = true, norm_offset = true;  // whether the norm has a gain, an offset
  Activation activation = Activation::kNone;
  Skip skip = Skip::kNone;
  Order order = Order::kInputFirst;
  Residual residual = Residual::kNone;

  // Elements of the layer's products, and of its bias.
  uint64_t products() const { return residual == Residual::kHighway ? 2 * out : out; }

  bool operator==(const DefineLayer&) const = default;
};

// The names of the enumerators in recipes and in JSON.
constexpr std::array<std::string_view, 2> NamesOf(DefineLayer::Weights /*kind*/) {
  return {"per_group", "shared"};
}
constexpr std::array<std::string_view, 3> NamesOf(DefineLayer::Shuffle /*kind*/) {
  return {"none", "before_norm", "after_norm"};
}
constexpr std::array<std::string_view, 3> NamesOf(DefineLayer::Norm /*kind*/) {
  return {"none", "whole", "per_group"};
}
constexpr std::array<std::string_view, 3> NamesOf(DefineLayer::Skip /*kind*/) {
  return {"none", "concatenate", "mix"};
}
constexpr std::array<std::string_view, 2> NamesOf(DefineLayer::Order /*kind*/) {
  return {"input_first", "previous_first"};
}
constexpr std::array<std::string_view, 4> NamesOf(DefineLayer::Residual /*kind*/) {
  return {"none", "before_activation", "after_activation", "highway"};
}

struct DefineUnit {
  uint64_t map_width = 0;  // n: features of Map's output
  // Number of first layers whose output is the e of later skips; 0: e is Map's output. DeLighT's
  // unit has one such layer.
  uint64_t entry_layers = 0;
  std::vector<DefineLayer> layers;  // empty: the unit's output is Map's

  bool operator==(const DefineUnit&) const = default;
};

// The widest vector that a unit may have; the paper's widest is 4,096.
inline constexpr uint64_t kLargestDefineWidth = uint64_t{1} << 16;

// The shapes of a layer's tensors, each empty if the layer has no such tensor. Widths that the
// groups do not divide are rounded down. REQUIRES: groups > 0.
struct DefineShapes {
  Shape weight, bias, norm_gain, norm_offset;
};
DefineShapes ShapesOf(const DefineLayer& layer);

// Features of the layer's input if e has `e_width` features and the previous output `previous`.
uint64_t InputWidth(const DefineLayer& layer, uint64_t e_width, uint64_t previous);

// m: the width of the unit's output.
uint64_t OutputWidth(const DefineUnit& unit);

// The width of the e that skips join. REQUIRES: entry_layers is at most the number of layers.
uint64_t SkipWidth(const DefineUnit& unit);

// The widest input and the most products of the unit's layers, each at least map_width.
struct DefineWidths {
  uint64_t in, products;
};
DefineWidths WidestOf(const DefineUnit& unit);

// Number of parameters of the layers, without Map's.
uint64_t ParameterCount(const DefineUnit& unit);

// Every inconsistency of the unit as one line of bounded length, "layer 1, groups: expected ..,
// found ..; .."; empty for a consistent unit.
std::string FaultsOf(const DefineUnit& unit);

}  // namespace kinglet

#endif  // KINGLET_FORMAT_DEFINE_UNIT_H_

// A DeFINE unit as a declared list of layers (Mehta et al., DeFINE: Deep Factorized Input Token
// Embeddings, ICLR 2020, section 3). What the paper leaves to the implementer is a field here: a
// recipe's JSON object for one layer maps onto DefineLayer field by field, and so does a layer in a
// model file.
//
// Map gives a word's vector e, the layers widen it (Expand), and an ungrouped layer narrows it
// (Reduce), which is only the last of the list: without it the list ends earlier, and a Reduce that
// also sees e is one that concatenates it. Linear, GLT, GLT with shuffle, HGT, with or without the
// mixing connection or residuals: tests/support/define_units.cc writes each.
#ifndef KINGLET_FORMAT_DEFINE_UNIT_H_
#define KINGLET_FORMAT_DEFINE_UNIT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "format/encoding.h"

namespace kinglet {

// One group-linear layer. Its input, e and the previous layer's output joined as `skip` says, is
// cut into `groups` adjacent chunks; each is multiplied by its group's matrix, and the products are
// put one after the other. Then come bias, normalisation and activation, in this order; `shuffle`
// and `residual` say where between them they stand.
//
// Matrices have a row for each feature of the output, [out / groups, in / groups] of one group.
struct DefineLayer {
  enum class Weights : uint8_t {
    kPerGroup,  // a matrix for each group (Mehta et al. 2018), one below the other
    kShared,    // one for all groups (DeFINE, appendix A.1)
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
  enum class Activation : uint8_t {
    kNone,
    kRelu,
    kGelu,   // x * Phi(x), with the error function
    kSwish,  // x * sigmoid(x)
    kTanh,
    kSigmoid
  };
  // How e comes to the layer's input beside the previous layer's output.
  enum class Skip : uint8_t {
    kNone,
    kConcatenate,  // the two vectors one after the other (Fig. 5d)
    kMix,  // chunk j of one followed by chunk j of the other, for each of the groups (Fig. 2)
  };
  enum class Order : uint8_t { kInputFirst, kPreviousFirst };
  // The previous layer's output is added (Fig. 5b); the widths must agree.
  enum class Residual : uint8_t { kNone, kBeforeActivation, kAfterActivation };

  uint64_t in = 0, out = 0;  // features; `in` counts those of e where there is a skip
  uint64_t groups = 1;
  Weights weights = Weights::kPerGroup;
  Bias bias = Bias::kPerGroup;
  Shuffle shuffle = Shuffle::kNone;
  Norm norm = Norm::kNone;
  double norm_epsilon = 1e-5;
  bool norm_gain = true, norm_offset = true;  // whether there are any
  Activation activation = Activation::kNone;
  Skip skip = Skip::kNone;
  Order order = Order::kInputFirst;
  Residual residual = Residual::kNone;

  bool operator==(const DefineLayer&) const = default;
};

struct DefineUnit {
  uint64_t map_width = 0;  // n: features of Map's output
  // So many of the first layers make the e that skips bring back; 0: e is Map's output. DeLighT's
  // unit has one such layer.
  uint64_t entry_layers = 0;
  std::vector<DefineLayer> layers;  // none: the unit gives Map's output

  bool operator==(const DefineUnit&) const = default;
};

// The widest vector that a unit may have; the paper's widest is 4,096.
inline constexpr uint64_t kLargestDefineWidth = uint64_t{1} << 16;

// The shapes of a layer's values; empty where it has none. A width that the groups do not divide is
// rounded down. REQUIRES: groups > 0.
struct DefineShapes {
  Shape weight, bias, norm_gain, norm_offset;
};
DefineShapes ShapesOf(const DefineLayer& layer);

// What the layer reads where e has `e_width` features and the output before it `previous`.
uint64_t InputWidth(const DefineLayer& layer, uint64_t e_width, uint64_t previous);

// m: the width of the unit's output.
uint64_t OutputWidth(const DefineUnit& unit);

// The width of the e that skips bring back. REQUIRES: entry_layers <= layers.
uint64_t SkipWidth(const DefineUnit& unit);

// The widest input and the widest output of its layers, each at least map_width.
struct DefineWidths {
  uint64_t in, out;
};
DefineWidths WidestOf(const DefineUnit& unit);

// Trained numbers of the layers, without Map's, by ShapesOf.
uint64_t ParameterCount(const DefineUnit& unit);

// Every inconsistency of the declaration, "layer 1, groups: expected .., found ..; ..", in one line
// of bounded length; empty where there is none.
std::string FaultsOf(const DefineUnit& unit);

}  // namespace kinglet

#endif  // KINGLET_FORMAT_DEFINE_UNIT_H_

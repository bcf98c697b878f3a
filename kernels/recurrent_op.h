// What follows the products of a recurrent cell, and bags of words (kernels/op.h).
#ifndef KINGLET_KERNELS_RECURRENT_OP_H_
#define KINGLET_KERNELS_RECURRENT_OP_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "kernels/operands.h"

namespace kinglet {

// The element-wise part of recurrent cells, after their matrix products, for one token. `input` and
// `recurrent` are the two products of the cell, biases included: n rows for each gate. s
// is the logistic sigmoid. Sums and products are rounded one by one, from left to right.

// Gates i, f, g, o with a = input + recurrent:
//   cell = s(a_f) * cell + s(a_i) * tanh(a_g); hidden = s(a_o) * tanh(cell)
struct LstmGates {
  static constexpr std::string_view kName = "LstmGates";
  BufferId input, recurrent;  // [4 n] of floats
  BufferId cell;              // state, [n] of floats
  BufferId hidden;            // [n] of floats

  void Operands(auto&& visit) const {
    visit.Reads(input);
    visit.Reads(recurrent);
    visit.Reads(cell);
    visit.Writes(cell);
    visit.Writes(hidden);
  }
};

// Gates r, z, m:
//   r = s(input_r + recurrent_r); z = s(input_z + recurrent_z)
//   m = tanh(input_m + r * recurrent_m); hidden = (1 - z) * m + z * hidden
struct GruGates {
  static constexpr std::string_view kName = "GruGates";
  BufferId input, recurrent;  // [3 n] of floats
  BufferId hidden;            // state, [n] of floats

  void Operands(auto&& visit) const {
    visit.Reads(input);
    visit.Reads(recurrent);
    visit.Reads(hidden);
    visit.Writes(hidden);
  }
};

// hidden = tanh(input + recurrent), or max(input + recurrent, 0) where `relu`.
struct RnnGates {
  static constexpr std::string_view kName = "RnnGates";
  BufferId input, recurrent;  // [n] of floats
  BufferId hidden;            // [n] of floats
  bool relu;

  void Operands(auto&& visit) const {
    visit.Reads(input);
    visit.Reads(recurrent);
    visit.Writes(hidden);
  }
};

// Gates z, f, o with a = input, or input + previous:
//   cell = s(a_f) * tanh(a_z) + (1 - s(a_f)) * cell; hidden = s(a_o) * cell
struct QrnnGates {
  static constexpr std::string_view kName = "QrnnGates";
  BufferId input;                    // [3 n] of floats
  std::optional<BufferId> previous;  // [3 n] of floats: the product with the previous token's input
  BufferId cell;                     // state, [n] of floats
  BufferId hidden;                   // [n] of floats

  void Operands(auto&& visit) const {
    visit.Reads(input);
    if (previous) visit.Reads(*previous);
    visit.Reads(cell);
    visit.Writes(cell);
    visit.Writes(hidden);
  }
};

// Adds the vector of one word of a list to the features of a bag of words: the sum, the number of
// tokens and the element-wise maximum. Position 0 of a list first resets the features. The padding
// token counts as a vector of zeros for the maximum, and not at all for the sum and the number. The
// sum is one chain in list order.
struct BagAppend {
  static constexpr std::string_view kName = "BagAppend";
  BufferId embedded;                // [n] of floats
  BufferId sum;                     // state, [n] of floats
  BufferId count;                   // state, [1] of kUint32: how many are in the sum
  std::optional<BufferId> largest;  // state, [n] of floats
  std::optional<uint32_t> padding;

  void Operands(auto&& visit) const {
    visit.Reads(embedded);
    visit.Reads(sum);
    visit.Reads(count);
    if (largest) visit.Reads(*largest);
    visit.Writes(sum);
    visit.Writes(count);
    if (largest) visit.Writes(*largest);
  }
};

// out = sum / count, followed by the maximum if the bag has one. REQUIRES: at least one token was
// not padding.
struct BagFeatures {
  static constexpr std::string_view kName = "BagFeatures";
  BufferId sum, count;
  std::optional<BufferId> largest;
  BufferId out;  // [n] or [2 n] of floats

  void Operands(auto&& visit) const {
    visit.Reads(sum);
    visit.Reads(count);
    if (largest) visit.Reads(*largest);
    visit.Writes(out);
  }
};

// y = max(x * scale + shift, 0), each operation rounded: batch normalisation with fixed statistics,
// and the activation after it.
struct ScaleShiftRelu {
  static constexpr std::string_view kName = "ScaleShiftRelu";
  BufferId x;             // [n] of floats
  WeightId scale, shift;  // [n]
  BufferId y;             // [n] of floats; may be x

  void Operands(auto&& visit) const {
    visit.Reads(x);
    visit.Weight(scale);
    visit.Weight(shift);
    visit.Writes(y);
  }
};

}  // namespace kinglet

#endif  // KINGLET_KERNELS_RECURRENT_OP_H_

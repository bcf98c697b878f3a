// Float weights -> integers and scales, by the rule of MicroNet's training code (symmetric linear
// quantisation; with n = 2^(bits-1) - 1, q = round_half_even(w * n / max|w|)).
#ifndef KINGLET_CONVERTERS_PASSES_QUANTISE_H_
#define KINGLET_CONVERTERS_PASSES_QUANTISE_H_

#include <optional>
#include <span>

#include "format/encoding.h"
#include "format/packed_model.h"
#include "format/writer.h"

namespace kinglet {

// The largest code of a symmetric quantiser: 255 for 9 bits. REQUIRES: kMinBits <= bits <=
// kMaxBits, here and below.
constexpr int SymmetricLevels(int bits) { return (1 << (bits - 1)) - 1; }

// max|values|; 0 of no values.
float LargestMagnitude(std::span<const float> values);

// `value` with its low `bits` mantissa bits cleared, towards zero: the training code stores scales
// so, which leaves room for the integer in a float32 product.
float ClearLowMantissaBits(float value, int bits);

// A matrix with a scale per row: the truncated max|row| / n. A row of zeros, and one whose largest
// entry is too small for its scale to be a normal float32 (about 1e-36), has scale and codes 0. The
// truncated scale is off by up to 2^(bits-23) of itself, so beyond 12 bits the error grows again.
Quantised QuantiseRows(std::span<const float> values, const Shape& shape, int bits);

// A matrix or vector with one scale: the truncated max|values| / n.
Quantised QuantiseWhole(std::span<const float> values, int bits);

// A vector with one divisor, n / max|values|; 1 where that is no finite number (all zero, or
// nearly), with codes 0.
Quantised QuantiseDivided(std::span<const float> values, int bits);

// Quantises a float32 tensor: a matrix by rows, a vector by one divisor. Others stay as they are.
void QuantiseTensor(int bits, EncodedTensor& tensor);
// The codes that QuantiseTensor would give a float32 matrix, which stays as it is; nothing of other
// tensors. REQUIRES: the tensor lives where it is, unchanged, for as long as they are made.
std::optional<RowCodes> QuantisedRows(int bits, const EncodedTensor& tensor);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PASSES_QUANTISE_H_

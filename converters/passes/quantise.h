// Post-training quantisation of weights: floats -> integers and scales, by the rule of MicroNet's
// training code. That is symmetric linear quantisation: q = round_half_even(w * n / max|w|), with n
// = 2^(bits-1) - 1.
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

// `value` with its low `bits` mantissa bits cleared (rounded towards zero). The training code
// stores scales like this, so that integer * scale is an exact float32 product.
float ClearLowMantissaBits(float value, int bits);

// A matrix with a scale per row: max|row| / n with low mantissa bits cleared. A row of zeros, or
// whose largest entry is too small for a scale that is a normal float32 (about 1e-36), gets scale
// and codes 0. Clearing bits changes the scale by up to 2^(bits-23) of itself, so beyond 12 bits
// the error grows with the number of bits.
Quantised QuantiseRows(std::span<const float> values, const Shape& shape, int bits);

// A matrix or vector with one scale: max|values| / n with low mantissa bits cleared.
Quantised QuantiseWhole(std::span<const float> values, int bits);

// A vector with one divisor, n / max|values|. Where that is not finite (all values are 0, or
// nearly), the divisor is 1 and all codes are 0.
Quantised QuantiseDivided(std::span<const float> values, int bits);

// Quantises a float32 tensor: a matrix by rows, a vector by one divisor. Tensors in other encodings
// do not change.
void QuantiseTensor(int bits, EncodedTensor& tensor);
// For a float32 matrix: the codes that QuantiseTensor would give it, computed row by row when they
// are needed; the tensor does not change. Nothing for other tensors. REQUIRES: the tensor's values
// outlive the result and do not change.
std::optional<RowCodes> QuantisedRows(int bits, const EncodedTensor& tensor);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PASSES_QUANTISE_H_

// Post-training quantisation of weights: floats -> integers and scales. Symmetric and linear: q =
// round_half_even(w / scale), at most n = 2^(bits-1) - 1 in size. The scale is max|w| / n, the rule
// of MicroNet's framework, or the scale with the least squared error.
#ifndef KINGLET_CONVERTERS_PASSES_QUANTISE_H_
#define KINGLET_CONVERTERS_PASSES_QUANTISE_H_

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "format/encoding.h"
#include "format/packed_model.h"
#include "format/writer.h"

namespace kinglet {

// How scales are chosen.
enum class ScaleBy : uint8_t {
  kLargest,      // the largest entry: nothing is clipped
  kLeastSquares  // the smallest sum of squared errors: rare large entries are clipped to n
};
// The names of ScaleBy in options and recipes, in the order of the enum.
inline constexpr std::array<std::string_view, 2> kScaleByNames = {"max", "mse"};

// How the entries of a matrix become integers, given the scales.
enum class RoundBy : uint8_t {
  kNearest,
  kFeedback,  // converters/passes/error_feedback.h
};
inline constexpr std::array<std::string_view, 2> kRoundByNames = {"nearest", "feedback"};

// The largest code of a symmetric quantiser: 255 for 9 bits. REQUIRES: kMinBits <= bits <=
// kMaxBits, here and below.
constexpr int SymmetricLevels(int bits) { return (1 << (bits - 1)) - 1; }

// max|values|; 0 if there are no values.
float LargestMagnitude(std::span<const float> values);

// `value` with its low `bits` mantissa bits cleared (rounded towards zero). The framework stores
// scales in this form, so that integer * scale is an exact float32 product.
float ClearLowMantissaBits(float value, int bits);

// The scale of a row by least squares, its low mantissa bits cleared, so that the sum of (w - scale
// * q)^2 is smallest among the scales tried: 37 from max|row| / n down to an eighth of it, of which
// the best is refined, alternating with its codes. Never worse than max|row| / n. 0 for a row that
// QuantiseRows gives scale 0.
float LeastSquaresScale(std::span<const float> row, int bits);

// A matrix with a scale per row: max|row| / n with low mantissa bits cleared, or LeastSquaresScale.
// A row of zeros, or whose largest entry is too small for a scale that is a normal float32 (about
// 1e-36), gets scale and codes 0. Clearing bits changes the scale by up to 2^(bits-23) of itself,
// so beyond 12 bits the error grows with the number of bits.
Quantised QuantiseRows(std::span<const float> values, const Shape& shape, int bits,
                       ScaleBy by = ScaleBy::kLargest);

// A matrix or vector with one scale, found likewise.
Quantised QuantiseWhole(std::span<const float> values, int bits, ScaleBy by = ScaleBy::kLargest);

// A vector with one divisor: n / max|values|, or 1 / LeastSquaresScale. Where the first is not
// finite (all values are 0, or nearly), the divisor is 1 and all codes are 0.
Quantised QuantiseDivided(std::span<const float> values, int bits, ScaleBy by = ScaleBy::kLargest);

// Quantises a float32 tensor: a matrix by rows, a vector by one divisor. Tensors in other encodings
// do not change.
void QuantiseTensor(int bits, EncodedTensor& tensor, ScaleBy by = ScaleBy::kLargest);
// For a float32 matrix: the codes that QuantiseTensor would give it, computed row by row when they
// are needed; the tensor does not change. Scales by least squares are found at once, and kept.
// Returns nullopt for other tensors. REQUIRES: the tensor's values outlive the result and do not
// change.
std::optional<RowCodes> QuantisedRows(int bits, const EncodedTensor& tensor,
                                      ScaleBy by = ScaleBy::kLargest);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PASSES_QUANTISE_H_

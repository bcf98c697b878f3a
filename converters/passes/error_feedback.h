// Quantisation with error feedback: the columns that are not yet rounded compensate the rounding
// errors of earlier columns (Frantar et al. 2022, "GPTQ", sections 3 and 4).
#ifndef KINGLET_CONVERTERS_PASSES_ERROR_FEEDBACK_H_
#define KINGLET_CONVERTERS_PASSES_ERROR_FEEDBACK_H_

#include <cstddef>
#include <span>

#include "converters/passes/input_moments.h"
#include "converters/passes/quantise.h"
#include "format/encoding.h"

namespace kinglet {

// The damping for tables whose rows are read as well as multiplied, and nearly as good as any other
// for other matrices (docs/QUANTISING.md).
inline constexpr double kFeedbackDamping = 1;

// QuantiseRows with codes that make the mean of ((w - scale q) . x)^2 small, instead of the error
// of each entry. x has the second moments, to which `damping` times their mean diagonal is added on
// the diagonal. Damping keeps entries near their own rounding, and serves vectors that the moments
// do not cover: 1 suits a table whose rows are read as well as multiplied. Scales are
// QuantiseRows'. Zeros stay zeros. Columns are rounded in the order of falling moments. Computed in
// float64; the result does not depend on the number of threads. Without finite, positive moments:
// QuantiseRows. REQUIRES: moments.width == Cols(shape); damping > 0; threads >= 1.
Quantised QuantiseWithFeedback(std::span<const float> values, const Shape& shape, int bits,
                               ScaleBy by, const SecondMoments& moments, double damping,
                               size_t threads);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PASSES_ERROR_FEEDBACK_H_

// Quantisation with error feedback: what one column's rounding costs is given to the columns that
// are not yet rounded (Frantar et al. 2022, "GPTQ", sections 3 and 4).
#ifndef KINGLET_CONVERTERS_PASSES_ERROR_FEEDBACK_H_
#define KINGLET_CONVERTERS_PASSES_ERROR_FEEDBACK_H_

#include <cstddef>
#include <span>

#include "converters/passes/input_moments.h"
#include "converters/passes/quantise.h"
#include "format/encoding.h"

namespace kinglet {

// As below of tables that are read as well as multiplied, and nearly as good as any other for the
// rest (docs/QUANTISING.md).
inline constexpr double kFeedbackDamping = 1;

// QuantiseRows with codes that make the mean of ((w - scale q) . x)^2 small, not that of each
// entry: x has the second moments, to which `damping` times their mean diagonal is added on the
// diagonal. It keeps entries near their own rounding, and serves vectors that the moments do not
// know: 1 suits a table whose rows are read as well as multiplied. Scales are QuantiseRows'.
// Zeros stay zeros. Columns are rounded in the order of falling moments. Float64; the same for any
// number of threads. Without finite, positive moments: QuantiseRows.
// REQUIRES: moments.width == Cols(shape); damping > 0; threads >= 1.
Quantised QuantiseWithFeedback(std::span<const float> values, const Shape& shape, int bits,
                               ScaleBy by, const SecondMoments& moments, double damping,
                               size_t threads);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PASSES_ERROR_FEEDBACK_H_

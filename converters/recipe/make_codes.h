// A code pass on one table.
#ifndef KINGLET_CONVERTERS_RECIPE_MAKE_CODES_H_
#define KINGLET_CONVERTERS_RECIPE_MAKE_CODES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "converters/passes/coded_table.h"
#include "converters/passes/k_means.h"
#include "converters/recipe/recipe_pass.h"
#include "format/encoding.h"
#include "kinglet/status.h"

namespace kinglet {

// `progress` gets the number of a pool, or of a sum's position; it may be empty. Errors: those of
// ProductQuantise, QuantiseToSums and FitSubVectors.
Result<CodedTable> MakeCodes(
    const CodePass& pass, std::span<const float> values, const Shape& shape, size_t threads,
    const std::function<void(uint64_t pool, const KMeansProgress& step)>& progress);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_RECIPE_MAKE_CODES_H_

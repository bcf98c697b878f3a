// Checks of a conversion's options, before any work is done.
#ifndef KINGLET_CONVERTERS_CONVERT_OPTIONS_H_
#define KINGLET_CONVERTERS_CONVERT_OPTIONS_H_

#include <string>

#include "converters/convert.h"
#include "kinglet/status.h"

namespace kinglet {

// Checks ranges, options that need or exclude each other, and the output path (CheckOutputPath).
// Errors: KINGLET_INVALID_ARGUMENT, and those of CheckOutputPath.
Status CheckOptions(const ConvertOptions& options);

// The part of CheckOptions about bits and the options that need bits.
Status CheckQuantisation(const ConvertOptions& options);

// The options without quantisation: no bits, and none of the options that need bits.
ConvertOptions InFloats(ConvertOptions options);

// The options that change the model, as text for its provenance: "bits 9, calibrated".
std::string ShapingOptions(const ConvertOptions& options);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_CONVERT_OPTIONS_H_

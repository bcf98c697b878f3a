// What must be true of the options of a conversion before any work is done.
#ifndef KINGLET_CONVERTERS_CONVERT_OPTIONS_H_
#define KINGLET_CONVERTERS_CONVERT_OPTIONS_H_

#include <string>

#include "converters/convert.h"
#include "kinglet/status.h"

namespace kinglet {

// Ranges, options that need each other, and an output that can be written without harm: no folder,
// not one of the inputs, in a folder that exists. Errors: KINGLET_INVALID_ARGUMENT,
// KINGLET_NOT_FOUND.
Status CheckOptions(const ConvertOptions& options);

// The options that shape the model, for its provenance: "bits 9, calibrated".
std::string ShapingOptions(const ConvertOptions& options);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_CONVERT_OPTIONS_H_

// The rules of format/dense_layers.h.
#ifndef KINGLET_FORMAT_VALIDATE_DENSE_H_
#define KINGLET_FORMAT_VALIDATE_DENSE_H_

#include <cstdint>
#include <string>

#include "format/block_checks.h"
#include "format/dense_layers.h"
#include "kinglet/status.h"

namespace kinglet {

// Checks one layer. `columns`: the layer's inputs; set to its outputs. Errors: as ValidateDense.
Status ValidateDenseLayer(const BlockChecks& checks, const std::string& part,
                          const DenseLayer& layer, uint64_t& columns);
// Checks that the layers map vectors of `input` elements to `output` elements. Errors:
// KINGLET_INVALID_MODEL naming the block that `checks` has entered.
Status ValidateDense(const BlockChecks& checks, const DenseLayers& dense, uint64_t input,
                     uint64_t output);

}  // namespace kinglet

#endif  // KINGLET_FORMAT_VALIDATE_DENSE_H_

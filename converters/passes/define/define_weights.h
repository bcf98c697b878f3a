// The values of a DeFINE unit's layers, as read from a checkpoint.
#ifndef KINGLET_CONVERTERS_PASSES_DEFINE_DEFINE_WEIGHTS_H_
#define KINGLET_CONVERTERS_PASSES_DEFINE_DEFINE_WEIGHTS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "format/define_unit.h"
#include "kinglet/status.h"

namespace kinglet {

// The values of one layer, row-major by ShapesOf; empty where the layer has no such values.
struct DefineWeights {
  std::vector<float> weight, bias, norm_gain, norm_offset;
};

// How a checkpoint stores the matrices of a layer, one after the other.
enum class DefineLayout : uint8_t {
  kInOut,  // [in / groups, out / groups]
  kOutIn,  // [out / groups, in / groups]: torch.nn.Linear's, and a model file's
};

// Errors: KINGLET_INVALID_ARGUMENT with FaultsOf(unit).
Status CheckUnit(const DefineUnit& unit);

// Checks that each layer has exactly the values that it declares. Errors:
// KINGLET_INVALID_CHECKPOINT. REQUIRES: CheckUnit finds no fault.
Status CheckWeights(const DefineUnit& unit, std::span<const DefineWeights> weights);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PASSES_DEFINE_DEFINE_WEIGHTS_H_

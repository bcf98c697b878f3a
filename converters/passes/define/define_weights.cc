#include "converters/passes/define/define_weights.h"

#include <string>

#include "converters/checkpoints/entries.h"

namespace kinglet {

Status CheckUnit(const DefineUnit& unit) {
  const std::string faults = FaultsOf(unit);
  return faults.empty() ? Status() : Status(KINGLET_INVALID_ARGUMENT, "define unit: " + faults);
}

Status CheckWeights(const DefineUnit& unit, std::span<const DefineWeights> weights) {
  KINGLET_RETURN_IF_ERROR(
      CheckEntries("define unit", "layers with values", {unit.layers.size()}, weights.size()));
  for (size_t index = 0; index < weights.size(); ++index) {
    const DefineShapes shapes = ShapesOf(unit.layers[index]);
    const DefineWeights& values = weights[index];
    const auto check = [index](const char* name, const Shape& shape,
                               const std::vector<float>& entries) {
      const std::string place = "layer " + std::to_string(index) + ", " + name;
      KINGLET_RETURN_IF_ERROR(CheckEntries("define unit", place, shape, entries.size()));
      return CheckFinite("define unit", place, entries);
    };
    KINGLET_RETURN_IF_ERROR(check("weight", shapes.weight, values.weight));
    KINGLET_RETURN_IF_ERROR(check("bias", shapes.bias, values.bias));
    KINGLET_RETURN_IF_ERROR(check("norm gain", shapes.norm_gain, values.norm_gain));
    KINGLET_RETURN_IF_ERROR(check("norm offset", shapes.norm_offset, values.norm_offset));
  }
  return {};
}

}  // namespace kinglet

#include "format/validate_define.h"

#include <optional>
#include <string>

#include "format/limits.h"
#include "format/message_text.h"

namespace kinglet {
namespace {

// A vector of a layer, which is present iff its shape is not empty.
Status ValidateLayerVector(const BlockChecks& checks, const std::string& part,
                           const std::optional<TensorId>& id, const Shape& shape) {
  KINGLET_RETURN_IF_ERROR(checks.ValidatePresence(
      part, id.has_value(), !shape.empty(),
      shape.empty() ? "the layer declares none" : "the layer declares one"));
  return checks.ValidateOptional(part, id, shape);
}

}  // namespace

Status ValidateDefine(const BlockChecks& checks, const KeptDefineUnit& kept, uint64_t width) {
  const DefineUnit& unit = kept.unit;
  KINGLET_RETURN_IF_ERROR(checks.ValidateRange("unit, layers", unit.layers.size(), 0, kMaxLayers));
  if (kept.tensors.size() != unit.layers.size()) {
    return checks.InvalidPart("unit, layers with tensors", std::to_string(unit.layers.size()),
                              std::to_string(kept.tensors.size()));
  }
  if (const std::string faults = FaultsOf(unit); !faults.empty()) {
    return checks.InvalidPart("unit, " + faults);
  }
  if (OutputWidth(unit) != width) {
    return checks.InvalidPart("unit, output", std::to_string(width) + " features",
                              std::to_string(OutputWidth(unit)));
  }
  KINGLET_RETURN_IF_ERROR(
      checks.ValidateRange("unit, cache rows", kept.cache_rows, 1, kMaxDimension));
  for (size_t i = 0; i < unit.layers.size(); ++i) {
    const DefineShapes shapes = ShapesOf(unit.layers[i]);
    const DefineTensors& tensors = kept.tensors[i];
    const std::string part = Numbered("unit, layer", i) + ", ";
    KINGLET_RETURN_IF_ERROR(
        checks.ValidateTensorShape(part + "weight", tensors.weight, shapes.weight));
    KINGLET_RETURN_IF_ERROR(checks.ValidateNotCoded(part + "weight", tensors.weight));
    KINGLET_RETURN_IF_ERROR(ValidateLayerVector(checks, part + "bias", tensors.bias, shapes.bias));
    KINGLET_RETURN_IF_ERROR(
        ValidateLayerVector(checks, part + "norm gain", tensors.norm_gain, shapes.norm_gain));
    KINGLET_RETURN_IF_ERROR(
        ValidateLayerVector(checks, part + "norm offset", tensors.norm_offset, shapes.norm_offset));
  }
  return {};
}

}  // namespace kinglet

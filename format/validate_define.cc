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

// `name`: of the unit in messages.
Status ValidateUnit(const BlockChecks& checks, const std::string& name, const KeptDefineUnit& kept,
                    uint64_t width) {
  const DefineUnit& unit = kept.unit;
  KINGLET_RETURN_IF_ERROR(
      checks.ValidateRange(name + ", layers", unit.layers.size(), 0, kMaxLayers));
  if (kept.tensors.size() != unit.layers.size()) {
    return checks.InvalidPart(name + ", layers with tensors", std::to_string(unit.layers.size()),
                              std::to_string(kept.tensors.size()));
  }
  if (const std::string faults = FaultsOf(unit); !faults.empty()) {
    return checks.InvalidPart(name + ", " + faults);
  }
  if (OutputWidth(unit) != width) {
    return checks.InvalidPart(name + ", output", std::to_string(width) + " features",
                              std::to_string(OutputWidth(unit)));
  }
  KINGLET_RETURN_IF_ERROR(
      checks.ValidateRange(name + ", cache rows", kept.cache_rows, 1, kMaxDimension));
  for (size_t i = 0; i < unit.layers.size(); ++i) {
    const DefineShapes shapes = ShapesOf(unit.layers[i]);
    const DefineTensors& tensors = kept.tensors[i];
    const std::string part = Numbered(name + ", layer", i) + ", ";
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

}  // namespace

Status ValidateSpelling(const BlockChecks& checks, const AdaptiveEmbedding& embedding, size_t index,
                        const std::string& part) {
  const EmbeddingBin& bin = embedding.bins[index];
  const KeptDefineUnit* const unit = UnitOf(embedding.units, index);
  if (unit == nullptr || index + 1 != embedding.bins.size() || bin.projection) {
    return checks.InvalidPart(part + ", spelling", "one of the last bin, of a unit, unprojected",
                              unit == nullptr  ? "no unit"
                              : bin.projection ? "a projection"
                                               : "another bin");
  }
  const SpellingRows& spelling = *bin.spelling;
  KINGLET_RETURN_IF_ERROR(
      checks.ValidateRange(part + ", longest", spelling.longest, 1, kLongestSpelling));
  KINGLET_RETURN_IF_ERROR(
      checks.ValidateRange(part + ", filters", spelling.filters.size(), 1, kMaxFilters));
  KINGLET_RETURN_IF_ERROR(checks.ValidateMatrix(part + ", bytes", bin.table, kSpellingSymbols, 0));
  const uint64_t vector = Cols(checks.ShapeOf(bin.table));
  KINGLET_RETURN_IF_ERROR(
      checks.ValidateRange(part + ", width of a byte", vector, 1, kLargestDefineWidth));
  uint64_t channels = 0;
  for (size_t i = 0; i < spelling.filters.size(); ++i) {
    const ByteFilter& filter = spelling.filters[i];
    const std::string name = part + ", " + Numbered("filter", i) + ", ";
    KINGLET_RETURN_IF_ERROR(
        checks.ValidateRange(name + "width", filter.width, 1, spelling.longest));
    KINGLET_RETURN_IF_ERROR(
        checks.ValidateMatrix(name + "weight", filter.weight, 0, filter.width * vector));
    const uint64_t rows = Rows(checks.ShapeOf(filter.weight));
    KINGLET_RETURN_IF_ERROR(checks.ValidateTensorShape(name + "bias", filter.bias, {rows}));
    KINGLET_RETURN_IF_ERROR(checks.ValidateNotCoded(name + "bias", filter.bias));
    channels += rows;
  }
  if (channels == unit->unit.map_width) return {};
  return checks.InvalidPart(part + ", channels of all filters",
                            std::to_string(unit->unit.map_width), std::to_string(channels));
}

Status ValidateUnits(const BlockChecks& checks, const AdaptiveEmbedding& embedding) {
  KINGLET_RETURN_IF_ERROR(checks.ValidateRange("units", embedding.units.size(), 0, kMaxBins));
  const uint64_t bins = embedding.bins.size();
  uint64_t next = 0;  // the first bin that no earlier unit has
  for (size_t i = 0; i < embedding.units.size(); ++i) {
    const KeptDefineUnit& unit = embedding.units[i];
    const std::string name = Numbered("unit", i);
    const uint64_t end = uint64_t{unit.first_bin} + unit.bin_count;
    if (unit.bin_count == 0 || unit.first_bin < next || end > bins) {
      return checks.InvalidPart(
          name + ", bins",
          "at least one of " + std::to_string(next) + " to " + std::to_string(bins - 1),
          std::to_string(unit.bin_count) + " from " + std::to_string(unit.first_bin));
    }
    next = end;
    KINGLET_RETURN_IF_ERROR(ValidateUnit(checks, name, unit, embedding.width));
  }
  return {};
}

}  // namespace kinglet

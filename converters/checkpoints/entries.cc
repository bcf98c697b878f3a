#include "converters/checkpoints/entries.h"

#include <algorithm>
#include <cmath>

namespace kinglet {

Status CheckEntries(const std::string& what, const std::string& where, const Shape& shape,
                    uint64_t found) {
  uint64_t expected = shape.empty() ? 0 : 1;
  for (const uint64_t dimension : shape) {
    if (dimension == 0) expected = 0;
  }
  for (const uint64_t dimension : shape) {
    if (__builtin_mul_overflow(expected, dimension, &expected)) {
      return Status::Refusal(KINGLET_INVALID_CHECKPOINT, what, where, "fewer than 2^64 entries",
                             ShapeText(shape));
    }
  }
  if (found == expected) return {};
  const std::string text = shape.empty() ? "none" : std::to_string(expected) + " entries";
  return Status::Refusal(KINGLET_INVALID_CHECKPOINT, what, where,
                         text + (shape.size() > 1 ? " as " + ShapeText(shape) : ""),
                         std::to_string(found));
}

Status CheckFinite(const std::string& what, const std::string& where,
                   std::span<const float> entries, uint64_t first) {
  const auto bad = std::find_if_not(entries.begin(), entries.end(),
                                    [](float value) { return std::isfinite(value); });
  if (bad == entries.end()) return {};
  const uint64_t index = first + static_cast<uint64_t>(bad - entries.begin());
  return Status::Refusal(KINGLET_INVALID_CHECKPOINT, what,
                         where + ", entry " + std::to_string(index), "a finite number",
                         std::isnan(*bad) ? "NaN" : (*bad > 0 ? "infinity" : "-infinity"));
}

Status CheckArray(const std::string& what, const std::string& where, const Shape& shape,
                  std::span<const float> entries) {
  KINGLET_RETURN_IF_ERROR(CheckEntries(what, where, shape, entries.size()));
  return CheckFinite(what, where, entries);
}

Status CheckCount(const std::string& what, const std::string& where, uint64_t count) {
  if (count >= 1 && count <= UINT32_MAX) return {};
  return Status::Refusal(KINGLET_INVALID_CHECKPOINT, what, where, "1 to 2^32 - 1",
                         std::to_string(count));
}

Status CheckVariances(const std::string& what, std::span<const float> variances, double epsilon) {
  if (!std::isfinite(epsilon) || epsilon < 0) {
    return Status::Refusal(KINGLET_INVALID_CHECKPOINT, what, "batch norm epsilon",
                           "a number of at least 0", std::to_string(epsilon));
  }
  for (size_t i = 0; i < variances.size(); ++i) {
    if (variances[i] >= 0 && variances[i] + epsilon > 0) continue;
    return Status::Refusal(
        KINGLET_INVALID_CHECKPOINT, what, "batch norm variance, entry " + std::to_string(i),
        "at least 0, and above 0 with epsilon added", std::to_string(variances[i]));
  }
  return {};
}

}  // namespace kinglet

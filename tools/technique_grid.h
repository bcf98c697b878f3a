// The changes that `kinglet frontier` tries on tensors, by technique.
#ifndef KINGLET_TOOLS_TECHNIQUE_GRID_H_
#define KINGLET_TOOLS_TECHNIQUE_GRID_H_

#include <array>
#include <cstdint>
#include <set>
#include <string_view>
#include <vector>

#include "converters/planning/tensor_change.h"
#include "format/encoding.h"

namespace kinglet {

enum class Technique : uint8_t { kBits, kPrune, kCodes, kSum, kLowRank, kSlim, kHashed };
inline constexpr std::array<std::string_view, 7> kTechniqueNames = {
    "bits", "prune", "codes", "sum", "low-rank", "slim", "hashed"};

Technique TechniqueOf(const TensorChange& change);

// Changes of a tensor of this shape. Those of tables are omitted where they would take more than
// about five bits an entry, or minutes to find.
std::vector<TensorChange> ChangesOf(const std::set<Technique>& techniques, const Shape& shape);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_TECHNIQUE_GRID_H_

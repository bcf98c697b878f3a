// kinglet embed --layer: what the layers of a DeFINE unit compute.
#ifndef KINGLET_TOOLS_UNIT_LAYERS_H_
#define KINGLET_TOOLS_UNIT_LAYERS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kinglet/status.h"
#include "tools/run_options.h"

namespace kinglet {

struct UnitVector {
  std::vector<double> all;                  // the layer's output
  std::vector<std::vector<double>> groups;  // of its elements, those that each group computed
  int digits;                               // NumberDigits
};
using UnitVectorSink = std::function<Status(uint32_t id, const UnitVector& vector)>;

// The output of layer `layer` of the input's DeFINE unit for each word of the file of ids; layer 0
// is the Map layer. Vectors are those before the embedding's scale (Mehta et al. 2020, figures 8 to
// 11). Errors: KINGLET_UNSUPPORTED for a model without a unit that stays; KINGLET_INVALID_ARGUMENT
// for a layer that the unit lacks, and for a word whose bin has no unit; those of reading the file,
// of running the model and of `sink`.
Status ForEachUnitVector(const RunOptions& options, const std::string& ids, uint32_t layer,
                         const UnitVectorSink& sink);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_UNIT_LAYERS_H_

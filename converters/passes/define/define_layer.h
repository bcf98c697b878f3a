// One layer of a DeFINE unit, applied to a block of words at a time in double precision.
#ifndef KINGLET_CONVERTERS_PASSES_DEFINE_DEFINE_LAYER_H_
#define KINGLET_CONVERTERS_PASSES_DEFINE_DEFINE_LAYER_H_

#include <cstdint>

#include "converters/passes/define/define_weights.h"
#include "converters/passes/word_block.h"

namespace kinglet {

// The output of `layer` for the e of its unit and the previous layer's output. `joined` and
// `unshuffled` are work space as wide as the layer's input and output. Nothing is allocated.
// REQUIRES: CheckUnit and CheckWeights find nothing.
void ApplyLayer(const DefineLayer& layer, const DefineWeights& weights, const FeatureBlock& e,
                uint64_t e_width, const FeatureBlock& previous, uint64_t previous_width,
                FeatureBlock& joined, FeatureBlock& unshuffled, FeatureBlock& output);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PASSES_DEFINE_DEFINE_LAYER_H_

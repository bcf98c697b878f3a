// One layer of a DeFINE unit, applied to a batch of words at a time in double precision.
#ifndef KINGLET_CONVERTERS_PASSES_DEFINE_DEFINE_LAYER_H_
#define KINGLET_CONVERTERS_PASSES_DEFINE_DEFINE_LAYER_H_

#include <cstdint>

#include "converters/passes/define/define_weights.h"
#include "converters/passes/word_batch.h"

namespace kinglet {

// Computes the output of `layer` from its unit's e and the previous layer's output. `joined` and
// `unshuffled` are work space as wide as the layer's input and output. No memory is allocated.
// REQUIRES: CheckUnit and CheckWeights find no fault.
void ApplyLayer(const DefineLayer& layer, const DefineWeights& weights, const FeatureBatch& e,
                uint64_t e_width, const FeatureBatch& previous, uint64_t previous_width,
                FeatureBatch& joined, FeatureBatch& unshuffled, FeatureBatch& output);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PASSES_DEFINE_DEFINE_LAYER_H_

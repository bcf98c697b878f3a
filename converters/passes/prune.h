// Magnitude pruning: the smallest entries of a tensor become zero.
#ifndef KINGLET_CONVERTERS_PASSES_PRUNE_H_
#define KINGLET_CONVERTERS_PASSES_PRUNE_H_

#include <span>

#include "format/writer.h"

namespace kinglet {

// Zeroes the floor(fraction * entries) entries of the smallest magnitude, of equal ones those with
// the lower index. Entries that are zero already count. A quantised tensor keeps its scales.
// REQUIRES: 0 <= fraction < 1.
void PruneTensor(double fraction, EncodedTensor& tensor);
void PruneTensors(double fraction, std::span<const TensorId> which, ModelDraft& draft);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PASSES_PRUNE_H_

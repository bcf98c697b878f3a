// Magnitude pruning (Han et al. 2015): the entries of the smallest magnitude become zero.
#ifndef KINGLET_CONVERTERS_PASSES_PRUNE_H_
#define KINGLET_CONVERTERS_PASSES_PRUNE_H_

#include "format/encoding.h"

namespace kinglet {

// Zeroes the floor(fraction * entries) entries of the smallest magnitude; of equal ones, those with
// the lower index. Entries that are already zero are counted. A quantised tensor keeps its scales.
// A coded table does not change. The memory needed does not grow with the tensor.
// REQUIRES: 0 <= fraction < 1.
void PruneTensor(double fraction, EncodedTensor& tensor);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PASSES_PRUNE_H_

// Magnitude pruning: the smallest entries of a tensor become zero.
#ifndef KINGLET_CONVERTERS_PASSES_PRUNE_H_
#define KINGLET_CONVERTERS_PASSES_PRUNE_H_

#include "format/encoding.h"

namespace kinglet {

// Zeroes the floor(fraction * entries) entries of the smallest magnitude, of equal ones those with
// the lower index. Entries that are zero already count. A quantised tensor keeps its scales.
// Takes no memory in proportion to the tensor. REQUIRES: 0 <= fraction < 1; not coded.
void PruneTensor(double fraction, EncodedTensor& tensor);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PASSES_PRUNE_H_

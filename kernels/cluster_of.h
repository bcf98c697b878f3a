// Which cluster of the vocabulary contains a token. C++17, for the device too.
#ifndef KINGLET_KERNELS_CLUSTER_OF_H_
#define KINGLET_KERNELS_CLUSTER_OF_H_

#include <cstdint>

#include "kernels/host_device.h"

namespace kinglet {

// The last of the clusters 0 .. clusters - 1 that begins at `token` or before it. first_of(i) is
// the first token of cluster i; first_of never decreases, and first_of(0) is 0. A cluster without
// tokens begins where the next cluster does, so it is never the answer. REQUIRES: clusters > 0.
template <class FirstOf>
KINGLET_HOST_DEVICE constexpr uint32_t ClusterOf(uint32_t token, uint32_t clusters,
                                                 const FirstOf& first_of) {
  uint32_t index = 0;  // the answer is one of the `left` clusters from here on
  for (uint32_t left = clusters; left > 1;) {
    const uint32_t half = left / 2;
    if (first_of(index + half) <= token) {
      index += half;
      left -= half;
    } else {
      left = half;
    }
  }
  return index;
}

}  // namespace kinglet

#endif  // KINGLET_KERNELS_CLUSTER_OF_H_

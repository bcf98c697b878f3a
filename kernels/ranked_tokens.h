// A device's answer to a query about one lane, as the device writes it. C++17, for the device too.
#ifndef KINGLET_KERNELS_RANKED_TOKENS_H_
#define KINGLET_KERNELS_RANKED_TOKENS_H_

#include <cstdint>

#include "kernels/host_device.h"

namespace kinglet {

// The most probable tokens after a lane's last one, or the one token that the query named.
// Log-probabilities are those of the host's own answer (runtime/queries/distribution.h), bit for
// bit. A query for k tokens allocates only the first k of `tokens`.
struct RankedTokens {
  static constexpr uint32_t kMost = 64;
  struct Token {
    uint32_t id;
    float log_probability;
  };
  uint32_t count;
  // 0 if all logits are finite, or 1 + the first cluster whose logits are not. The number of
  // clusters stands for the cache.
  uint32_t not_finite;
  uint32_t looked_into;  // how many log-probabilities were computed to find `tokens`
  Token tokens[kMost];   // most probable first

  KINGLET_HOST_DEVICE static constexpr uint64_t BytesFor(uint32_t k) {
    return sizeof(RankedTokens) - (kMost - k) * sizeof(Token);
  }
};

}  // namespace kinglet

#endif  // KINGLET_KERNELS_RANKED_TOKENS_H_

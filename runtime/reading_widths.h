// The number of values that a masked model computes about a text that it has read.
#ifndef KINGLET_RUNTIME_READING_WIDTHS_H_
#define KINGLET_RUNTIME_READING_WIDTHS_H_

#include <cstdint>

#include "kernels/plan.h"

namespace kinglet {

// Elements of the pooled vector; 0 without a pooler, and for a model that is not a masked one.
inline uint32_t PooledWidth(const Plan& plan) {
  if (!plan.reading || !plan.reading->pooled) return 0;
  return static_cast<uint32_t>(plan.buffer(*plan.reading->pooled).count);
}

// Scores of a text or, in a model that scores spans, of each token; 0 for a model without scores.
inline uint32_t ScoreCount(const Plan& plan) {
  if (!plan.reading || !plan.reading->scores) return 0;
  return static_cast<uint32_t>(plan.buffer(*plan.reading->scores).count);
}

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_READING_WIDTHS_H_

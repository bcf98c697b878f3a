// The neural cache's two operations (kernels/op.h, CacheAppend and CacheWeights).
#ifndef KINGLET_KERNELS_REF_CACHE_H_
#define KINGLET_KERNELS_REF_CACHE_H_

#include <cstdint>

#include "kernels/cache_weight.h"
#include "kernels/functions.h"
#include "kernels/op.h"
#include "kernels/ref/matvec.h"
#include "kernels/ref/operand.h"
#include "kernels/ref/softmax.h"

namespace kinglet::ref {

template <class T>
class CacheAppendKernel {
 public:
  CacheAppendKernel(const CacheAppend& op, const Plan& plan, const BufferLayout& layout)
      : hidden_(plan, layout, op.hidden),
        keys_(plan, layout, op.keys),
        tokens_(layout[op.tokens]),
        capacity_(op.capacity) {}

  void operator()(StreamFrame& frame) const {
    if (frame.position == 0) return;
    const size_t slot = RingSlot(frame.position - 1, capacity_);
    keys_.CopyFrom(frame, slot * hidden_.count(), hidden_, 0, hidden_.count());
    tokens_.At<uint32_t>(frame)[slot] = frame.token;
  }

 private:
  Operand<T> hidden_, keys_;
  Slot tokens_;
  uint32_t capacity_;
};

// Leaves the weights of n > 0 logits x in x and returns their sum.
template <class T>
T WeighPairs(T* x, size_t n) {
  const T largest = Largest(x, n);
  CacheUnits<T> units{0};
  for (size_t i = 0; i < n; ++i) {
    x[i] = CacheWeight(Exp(x[i] - largest));
    units = AddUnits(units, UnitsOf(x[i]));
  }
  return WeightOfUnits<T>(units);
}

template <class T>
class CacheWeightsKernel {
 public:
  CacheWeightsKernel(const CacheWeights& op, const Plan& plan, const BufferLayout& layout)
      : hidden_(plan, layout, op.hidden),
        keys_(plan, layout, op.keys),
        weights_(layout[op.weights]),
        total_(layout[op.total]),
        capacity_(op.capacity),
        first_position_(op.first_position),
        theta_(static_cast<T>(op.theta)) {}

  void operator()(StreamFrame& frame) const {
    const size_t stored = CachePairs(frame.position, capacity_, first_position_);
    T* weights = weights_.At<T>(frame);
    T* total = total_.At<T>(frame);
    total[0] = T{0};
    if (stored == 0) return;
    for (size_t i = 0; i < stored; ++i) weights[i] = theta_ * Product(frame, i);
    total[0] = WeighPairs(weights, stored);
  }

 private:
  T Product(const StreamFrame& frame, size_t slot) const {
    const size_t n = hidden_.count();
    if (hidden_.integer()) {
      int64_t sum = 0;
      for (size_t i = 0; i < n; ++i)
        sum += hidden_.Code(frame, i) * keys_.Code(frame, slot * n + i);
      return ScaledSum<T>(sum, hidden_.scale(), keys_.scale());
    }
    const T* h = hidden_.Floats(frame);
    const T* k = keys_.Floats(frame) + slot * n;
    return Dot<T>(
        n, [h](size_t i) { return h[i]; }, [k](size_t i) { return k[i]; });
  }

  Operand<T> hidden_, keys_;
  Slot weights_, total_;
  uint32_t capacity_;
  uint64_t first_position_;
  T theta_;
};

}  // namespace kinglet::ref

#endif  // KINGLET_KERNELS_REF_CACHE_H_

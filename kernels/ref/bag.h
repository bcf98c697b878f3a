// Bags of words and the element-wise part of their classifier.
#ifndef KINGLET_KERNELS_REF_BAG_H_
#define KINGLET_KERNELS_REF_BAG_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/backend.h"
#include "kernels/op.h"
#include "kernels/ref/weights.h"

namespace kinglet::ref {

template <class T>
class BagAppendKernel {
 public:
  BagAppendKernel(const BagAppend& op, const BufferLayout& layout)
      : embedded_(layout[op.embedded]),
        sum_(layout[op.sum]),
        count_(layout[op.count]),
        padding_(op.padding) {
    if (op.largest) largest_ = layout[*op.largest];
  }

  void operator()(StreamFrame& frame) const {
    const size_t n = sum_.count;
    const T* x = embedded_.At<T>(frame);
    T* sum = sum_.At<T>(frame);
    const bool first = frame.position == 0, counts = frame.token != padding_;
    uint32_t& count = *count_.At<uint32_t>(frame);
    if (first) {
      std::fill_n(sum, n, T{0});
      count = 0;
    }
    if (counts) {
      for (size_t i = 0; i < n; ++i) sum[i] += x[i];
      ++count;
    }
    if (!largest_) return;
    T* largest = largest_->At<T>(frame);
    for (size_t i = 0; i < n; ++i) {
      const T entry = counts ? x[i] : T{0};
      largest[i] = first || entry > largest[i] ? entry : largest[i];
    }
  }

 private:
  Slot embedded_, sum_, count_;
  std::optional<Slot> largest_;
  std::optional<uint32_t> padding_;
};

template <class T>
class BagFeaturesKernel {
 public:
  BagFeaturesKernel(const BagFeatures& op, const BufferLayout& layout)
      : sum_(layout[op.sum]), count_(layout[op.count]), out_(layout[op.out]) {
    if (op.largest) largest_ = layout[*op.largest];
  }

  void operator()(StreamFrame& frame) const {
    const T count = static_cast<T>(*count_.At<uint32_t>(frame));
    const T* sum = sum_.At<T>(frame);
    T* out = out_.At<T>(frame);
    for (size_t i = 0; i < sum_.count; ++i) out[i] = sum[i] / count;
    if (largest_) std::copy_n(largest_->At<T>(frame), sum_.count, out + sum_.count);
  }

 private:
  Slot sum_, count_, out_;
  std::optional<Slot> largest_;
};

template <class T>
class ScaleShiftReluKernel {
 public:
  ScaleShiftReluKernel(const ScaleShiftRelu& op, const BufferLayout& layout, WeightStore& store)
      : x_(layout[op.x]),
        y_(layout[op.y]),
        scale_(store.Get(op.scale)),
        shift_(store.Get(op.shift)) {}

  void operator()(StreamFrame& frame) const {
    const T* x = x_.At<T>(frame);
    T* y = y_.At<T>(frame);
    for (size_t i = 0; i < x_.count; ++i) {
      const T scaled = x[i] * static_cast<T>(scale_->values[i]);
      const T shifted = scaled + static_cast<T>(shift_->values[i]);
      y[i] = shifted < T{0} ? T{0} : shifted;  // NaN stays NaN
    }
  }
  std::vector<MemoryRange> WeightMemory() const {
    return {scale_->Memory(false)[0], shift_->Memory(false)[0]};
  }

 private:
  Slot x_, y_;
  SharedWeights scale_, shift_;
};

}  // namespace kinglet::ref

#endif  // KINGLET_KERNELS_REF_BAG_H_

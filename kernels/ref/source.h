// What encoders and cross-attention are made of (kernels/op.h, StoreRow, LoadRow, SourceAttention).
#ifndef KINGLET_KERNELS_REF_SOURCE_H_
#define KINGLET_KERNELS_REF_SOURCE_H_

#include <algorithm>
#include <cstddef>
#include <vector>

#include "kernels/backend.h"
#include "kernels/op.h"
#include "kernels/ref/softmax.h"
#include "kernels/ref/sum.h"
#include "kernels/ref/weights.h"

namespace kinglet::ref {

template <class T>
class StoreRowKernel {
 public:
  StoreRowKernel(const StoreRow& op, const BufferLayout& layout)
      : x_(layout[op.x]), rows_(layout[op.rows]) {}

  void operator()(Frame& frame) const {
    std::copy_n(x_.At<T>(frame), x_.count, rows_.At<T>(frame) + frame.position * x_.count);
  }

 private:
  Slot x_, rows_;
};

template <class T>
class LoadRowKernel {
 public:
  LoadRowKernel(const LoadRow& op, const BufferLayout& layout)
      : rows_(layout[op.rows]), x_(layout[op.x]) {}

  void operator()(Frame& frame) const {
    std::copy_n(rows_.At<T>(frame) + frame.position * x_.count, x_.count, x_.At<T>(frame));
  }

 private:
  Slot rows_, x_;
};

template <class T>
class SourceAttentionKernel {
 public:
  SourceAttentionKernel(const SourceAttention& op, const BufferLayout& layout)
      : op_(op),
        query_(layout[op.query]),
        memory_(layout[op.memory]),
        weights_(layout[op.weights]),
        out_(layout[op.out]),
        query_stride_(query_.count / op.heads),
        slot_stride_(memory_.count / op.window / op.heads),
        scale_(AttentionScale<T>(op.key_size)) {}

  void operator()(Frame& frame) const {
    for (size_t head = 0; head < op_.heads; ++head) Attend(frame, head);
  }

 private:
  // A head's key in a slot; its value follows.
  const T* Key(const Frame& frame, size_t head, size_t slot) const {
    const size_t end = (slot * op_.heads + head + 1) * slot_stride_;
    return memory_.At<T>(frame) + end - op_.value_size - op_.key_size;
  }

  void Attend(const Frame& frame, size_t head) const {
    const size_t n = frame.source_length;
    const T* q = query_.At<T>(frame) + head * query_stride_;
    T* weights = weights_.At<T>(frame) + head * op_.window;
    for (size_t s = 0; s < n; ++s) {
      const T* k = Key(frame, head, s);
      const T score = Dot<T>(
          op_.key_size, [q](size_t i) { return q[i]; }, [k](size_t i) { return k[i]; });
      weights[s] = score * scale_;
    }
    SoftmaxInPlace(weights, 0, n);

    T* out = out_.At<T>(frame) + head * op_.value_size;
    for (size_t c = 0; c < op_.value_size; ++c) {
      out[c] = Dot<T>(
          n, [weights](size_t s) { return weights[s]; },
          [&](size_t s) { return Key(frame, head, s)[op_.key_size + c]; });
    }
  }

  SourceAttention op_;
  Slot query_, memory_, weights_, out_;
  size_t query_stride_, slot_stride_;  // of a head, in elements
  T scale_;
};

}  // namespace kinglet::ref

#endif  // KINGLET_KERNELS_REF_SOURCE_H_

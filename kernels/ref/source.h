// The operations of encoders and cross-attention (kernels/op.h, StoreRow, LoadRow,
// SourceAttention).
#ifndef KINGLET_KERNELS_REF_SOURCE_H_
#define KINGLET_KERNELS_REF_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/backend.h"
#include "kernels/functions.h"
#include "kernels/op.h"
#include "kernels/ref/operand.h"
#include "kernels/ref/product.h"
#include "kernels/ref/quantise.h"
#include "kernels/ref/softmax.h"
#include "kernels/ref/sum.h"
#include "kernels/ref/weights.h"

namespace kinglet::ref {

template <class T>
class StoreRowKernel {
 public:
  StoreRowKernel(const StoreRow& op, const Plan& plan, const BufferLayout& layout)
      : x_(plan, layout, op.x), rows_(plan, layout, op.rows) {}

  void operator()(StreamFrame& frame) const {
    rows_.CopyFrom(frame, frame.position * x_.count(), x_, 0, x_.count());
  }

 private:
  Operand<T> x_, rows_;
};

template <class T>
class LoadRowKernel {
 public:
  LoadRowKernel(const LoadRow& op, const Plan& plan, const BufferLayout& layout)
      : rows_(plan, layout, op.rows), x_(plan, layout, op.x) {}

  void operator()(StreamFrame& frame) const {
    x_.CopyFrom(frame, 0, rows_, frame.position * x_.count(), x_.count());
  }

 private:
  Operand<T> rows_, x_;
};

template <class T>
class SourceAttentionKernel {
 public:
  SourceAttentionKernel(const SourceAttention& op, const Plan& plan, const BufferLayout& layout,
                        SharedWeights score_weight = nullptr)
      : op_(op),
        score_weight_(std::move(score_weight)),
        query_(plan, layout, op.query),
        memory_(plan, layout, op.memory),
        weights_(layout[op.weights]),
        out_(layout[op.out]),
        query_stride_(query_.count() / op.heads),
        slot_stride_(memory_.count() / op.window / op.heads),
        scale_(ScoreScale<T>(op)) {}

  void operator()(StreamFrame& frame) const {
    for (size_t head = 0; head < op_.heads; ++head) Attend(frame, head);
  }

  // Computes one head.
  void Attend(const StreamFrame& frame, size_t head) const {
    const size_t n = frame.source_length;
    T* weights = weights_.At<T>(frame) + head * op_.window;
    for (size_t s = 0; s < n; ++s) weights[s] = Score(frame, head, s) * scale_;
    SoftmaxInPlace(weights, 0, n);
    T* out = out_.At<T>(frame) + head * op_.value_size;
    for (size_t c = 0; c < op_.value_size; ++c) out[c] = WeightedValue(frame, head, c, weights);
  }
  std::vector<MemoryRange> WeightMemory() const {
    return score_weight_ ? score_weight_->Memory(false) : std::vector<MemoryRange>();
  }

 private:
  // Where a head's key and value begin in a slot.
  size_t KeyAt(size_t head, size_t slot) const {
    return (slot * op_.heads + head + 1) * slot_stride_ - KeyFromEnd(op_);
  }
  size_t ValueAt(size_t head, size_t slot) const {
    return (slot * op_.heads + head + 1) * slot_stride_ - op_.value_size;
  }

  T AdditiveScore(const T* q, const T* k, size_t head) const {
    return Dot<T>(
        op_.key_size,
        [&](size_t i) { return static_cast<T>(score_weight_->Value(0, head * op_.key_size + i)); },
        [q, k](size_t i) { return Tanh(q[i] + k[i]); });
  }

  T Score(const StreamFrame& frame, size_t head, size_t slot) const {
    const size_t query_at = head * query_stride_, key_at = KeyAt(head, slot);
    if (query_.integer()) {
      int64_t sum = 0;
      for (size_t i = 0; i < op_.key_size; ++i) {
        sum += query_.Code(frame, query_at + i) * memory_.Code(frame, key_at + i);
      }
      return ScaledSum<T>(sum, query_.scale(), memory_.scale());
    }
    const T* q = query_.Floats(frame) + query_at;
    const T* k = memory_.Floats(frame) + key_at;
    if (score_weight_) return AdditiveScore(q, k, head);
    return Dot<T>(
        op_.key_size, [q](size_t i) { return q[i]; }, [k](size_t i) { return k[i]; });
  }

  T WeightedValue(const StreamFrame& frame, size_t head, size_t c, const T* weights) const {
    const size_t n = frame.source_length;
    if (op_.weights_quantiser) {
      int64_t sum = 0;
      for (size_t s = 0; s < n; ++s) {
        sum += int64_t{QuantisedCode(weights[s], *op_.weights_quantiser)} *
               memory_.Code(frame, ValueAt(head, s) + c);
      }
      return ScaledSum<T>(sum, static_cast<T>(op_.weights_quantiser->scale), memory_.scale());
    }
    const T* values = memory_.Floats(frame);
    return Dot<T>(
        n, [weights](size_t s) { return weights[s]; },
        [&](size_t s) { return values[ValueAt(head, s) + c]; });
  }

  SourceAttention op_;
  SharedWeights score_weight_;  // null without kAdditive
  Operand<T> query_, memory_;
  Slot weights_, out_;
  size_t query_stride_, slot_stride_;  // of a head, in elements
  T scale_;
};

}  // namespace kinglet::ref

#endif  // KINGLET_KERNELS_REF_SOURCE_H_

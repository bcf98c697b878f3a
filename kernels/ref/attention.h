// Sliding-window attention with trained positions (kernels/op.h, WindowAttention).
#ifndef KINGLET_KERNELS_REF_ATTENTION_H_
#define KINGLET_KERNELS_REF_ATTENTION_H_

#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/functions.h"
#include "kernels/ref/matvec.h"
#include "kernels/ref/operand.h"
#include "kernels/ref/quantise.h"
#include "kernels/ref/sum.h"
#include "kernels/ref/weights.h"

namespace kinglet::ref {

template <class T>
class WindowAttentionKernel {
 public:
  WindowAttentionKernel(const WindowAttention& op, const Plan& plan, const BufferLayout& layout,
                        WeightStore& store)
      : op_(op),
        qkv_(plan, layout, op.qkv),
        keys_(plan, layout, op.keys),
        values_(plan, layout, op.values),
        positions_(store.Get(op.positions)),
        weights_(layout[op.weights]),
        out_(layout[op.out]),
        scale_(static_cast<T>(1.0 / std::sqrt(static_cast<double>(op.key_size)))) {}

  void operator()(Frame& frame) const {
    Store(frame);
    for (size_t head = 0; head < op_.heads; ++head) Attend(frame, head);
  }
  std::vector<MemoryRange> WeightMemory() const { return positions_->Memory(false); }

 private:
  size_t QueryAt(size_t head) const { return head * (2 * op_.key_size + op_.value_size); }

  // Ring slot of window slot s. The ring starts as zeros, so slots before the stream's first token
  // hold zero keys and values.
  size_t RingSlot(const Frame& frame, size_t s) const {
    return (frame.position + 1 + s) % op_.window;
  }
  // Window slots [FirstVisible, window) take part.
  size_t FirstVisible(const Frame& frame) const {
    if (op_.start == StreamStart::kZeros || frame.position + 1 >= op_.window) return 0;
    return op_.window - 1 - frame.position;
  }

  void Store(Frame& frame) const {
    const size_t slot = RingSlot(frame, op_.window - 1);
    for (size_t head = 0; head < op_.heads; ++head) {
      const size_t key_at = QueryAt(head) + op_.key_size;
      keys_.CopyFrom(frame, (slot * op_.heads + head) * op_.key_size, qkv_, key_at, op_.key_size);
      values_.CopyFrom(frame, (slot * op_.heads + head) * op_.value_size, qkv_,
                       key_at + op_.key_size, op_.value_size);
    }
  }

  void Attend(Frame& frame, size_t head) const {
    const size_t first = FirstVisible(frame);
    T* weights = weights_.At<T>(frame) + head * op_.window;
    for (size_t s = 0; s < op_.window; ++s) {
      weights[s] = s < first ? T{0} : Score(frame, head, s);
    }
    Softmax(weights, first);
    T* out = out_.At<T>(frame) + head * op_.value_size;
    for (size_t c = 0; c < op_.value_size; ++c) out[c] = WeightedValue(frame, head, c, weights);
  }

  T Score(const Frame& frame, size_t head, size_t s) const {
    const size_t query_at = QueryAt(head);
    const size_t key_at = (RingSlot(frame, s) * op_.heads + head) * op_.key_size;
    T content;
    if (qkv_.integer()) {
      int64_t sum = 0;
      for (size_t i = 0; i < op_.key_size; ++i) {
        sum += qkv_.Code(frame, query_at + i) * keys_.Code(frame, key_at + i);
      }
      content = ScaledSum<T>(sum, qkv_.step(), keys_.step());
    } else {
      const T* q = qkv_.Reals(frame) + query_at;
      const T* k = keys_.Reals(frame) + key_at;
      content = Dot<T>(
          op_.key_size, [q](size_t i) { return q[i]; }, [k](size_t i) { return k[i]; });
    }
    const T position = Dot<T>(
        op_.key_size, [&](size_t i) { return qkv_.Value(frame, query_at + i); },
        [&](size_t i) { return static_cast<T>(positions_->Value(i, s)); });
    return (content + position) * scale_;
  }

  // In place over [first, window); the slots before hold +0 and add +0.
  void Softmax(T* weights, size_t first) const {
    T largest = weights[first];
    for (size_t s = first + 1; s < op_.window; ++s)
      largest = weights[s] > largest ? weights[s] : largest;
    for (size_t s = first; s < op_.window; ++s) weights[s] = Exp(weights[s] - largest);
    const T total = Sum(weights, op_.window);
    for (size_t s = 0; s < op_.window; ++s) weights[s] = weights[s] / total;
  }

  T WeightedValue(const Frame& frame, size_t head, size_t c, const T* weights) const {
    const auto value_at = [&](size_t s) {
      return (RingSlot(frame, s) * op_.heads + head) * op_.value_size + c;
    };
    if (op_.weights_quantiser) {
      int64_t sum = 0;
      for (size_t s = 0; s < op_.window; ++s) {
        sum += int64_t{QuantisedCode(weights[s], *op_.weights_quantiser)} *
               values_.Code(frame, value_at(s));
      }
      return ScaledSum<T>(sum, static_cast<T>(op_.weights_quantiser->step), values_.step());
    }
    return Dot<T>(
        op_.window, [&](size_t s) { return weights[s]; },
        [&](size_t s) { return values_.Value(frame, value_at(s)); });
  }

  WindowAttention op_;
  Operand<T> qkv_, keys_, values_;
  SharedWeights positions_;
  Slot weights_, out_;
  T scale_;
};

}  // namespace kinglet::ref

#endif  // KINGLET_KERNELS_REF_ATTENTION_H_

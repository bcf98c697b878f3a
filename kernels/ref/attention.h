// Sliding-window attention (kernels/op.h, WindowAttention).
#ifndef KINGLET_KERNELS_REF_ATTENTION_H_
#define KINGLET_KERNELS_REF_ATTENTION_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "kernels/functions.h"
#include "kernels/ref/matvec.h"
#include "kernels/ref/operand.h"
#include "kernels/ref/quantise.h"
#include "kernels/ref/relative_rows.h"
#include "kernels/ref/softmax.h"
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
        weights_(layout[op.weights]),
        out_(layout[op.out]),
        tokens_(op.masked ? layout[op.masked->tokens] : Slot{}),
        scale_(AttentionScale<T>(op.key_size)) {
    if (const auto* slots = std::get_if<SlotColumns>(&op.positions)) {
      columns_ = store.Get(slots->columns);
    } else if (const auto* relative = std::get_if<RelativeRows>(&op.positions)) {
      rows_ = std::make_shared<const RelativeTable<T>>(*relative, op.heads, op.window, store);
    }
    if (op.start_row) {
      store.Claim(Count(plan.weights[*op.start_row].shape) * (sizeof(T) + sizeof(int32_t)));
      start_ = std::make_shared<const Start>(
          StartRow(*store.Get(*op.start_row), plan.buffer(op.qkv).quantiser));
    }
  }

  void operator()(StreamFrame& frame) const {
    Store(frame);
    for (size_t head = 0; head < op_.heads; ++head) Attend(frame, head);
  }
  std::vector<MemoryRange> WeightMemory() const {
    if (columns_) return columns_->Memory(false);
    std::vector<MemoryRange> memory;
    if (rows_) memory = rows_->Memory();
    if (start_) {
      memory.push_back(std::as_bytes(std::span(start_->floats)));
      memory.push_back(std::as_bytes(std::span(start_->codes)));
    }
    return memory;
  }

 private:
  size_t QueryAt(size_t head) const { return head * (2 * op_.key_size + op_.value_size); }

  // The start row as floats, and as codes of the quantiser of qkv.
  struct Start {
    std::vector<T> floats;
    std::vector<int32_t> codes;
  };
  static Start StartRow(const Weights& row, const std::optional<ActivationQuantiser>& quantiser) {
    Start start;
    for (const float value : row.values) {
      start.floats.push_back(static_cast<T>(value));
      if (quantiser) start.codes.push_back(QuantisedCode(static_cast<T>(value), *quantiser));
    }
    return start;
  }

  // Ring slot of window slot s. The ring starts as zeros: without a start row, slots before the
  // stream's first token have zero keys and values.
  size_t SlotOf(const StreamFrame& frame, size_t s) const {
    return WindowOf(op_, frame.position).Slot(static_cast<uint32_t>(s));
  }
  bool HoldsStart(const StreamFrame& frame, size_t s) const {
    return op_.start_row && s < WindowOf(op_, frame.position).FirstFilled();
  }

  // Element i of a head's key in window slot s, and of its value.
  size_t KeyAt(const StreamFrame& frame, size_t head, size_t s) const {
    const size_t slot = HoldsStart(frame, s) ? 0 : SlotOf(frame, s);
    return (slot * op_.heads + head) * op_.key_size;
  }
  int64_t KeyCode(const StreamFrame& frame, size_t head, size_t s, size_t i) const {
    const size_t at = KeyAt(frame, head, s) + i;
    return HoldsStart(frame, s) ? start_->codes[at] : keys_.Code(frame, at);
  }
  T Key(const StreamFrame& frame, size_t head, size_t s, size_t i) const {
    const size_t at = KeyAt(frame, head, s) + i;
    return HoldsStart(frame, s) ? start_->floats[at] : keys_.Value(frame, at);
  }
  size_t ValueAt(const StreamFrame& frame, size_t head, size_t s) const {
    if (!HoldsStart(frame, s)) return (SlotOf(frame, s) * op_.heads + head) * op_.value_size;
    return size_t{op_.heads} * op_.key_size + head * op_.value_size;
  }
  int64_t ValueCode(const StreamFrame& frame, size_t head, size_t s, size_t i) const {
    const size_t at = ValueAt(frame, head, s) + i;
    return HoldsStart(frame, s) ? start_->codes[at] : values_.Code(frame, at);
  }
  T Value(const StreamFrame& frame, size_t head, size_t s, size_t i) const {
    const size_t at = ValueAt(frame, head, s) + i;
    return HoldsStart(frame, s) ? start_->floats[at] : values_.Value(frame, at);
  }

  void Store(StreamFrame& frame) const {
    const size_t slot = WindowOf(op_, frame.position).newest;
    if (op_.masked) tokens_.At<uint32_t>(frame)[slot] = frame.token;
    for (size_t head = 0; head < op_.heads; ++head) {
      const size_t key_at = QueryAt(head) + op_.key_size;
      keys_.CopyFrom(frame, (slot * op_.heads + head) * op_.key_size, qkv_, key_at, op_.key_size);
      values_.CopyFrom(frame, (slot * op_.heads + head) * op_.value_size, qkv_,
                       key_at + op_.key_size, op_.value_size);
    }
  }

  void Attend(StreamFrame& frame, size_t head) const {
    const size_t first = FirstVisible(op_, frame.position);
    T* weights = weights_.At<T>(frame) + head * op_.window;
    for (size_t s = 0; s < op_.window; ++s) {
      weights[s] = s < first            ? T{0}
                   : IsMasked(frame, s) ? static_cast<T>(kMaskedScore)
                                        : Score(frame, head, s);
    }
    SoftmaxInPlace(weights, first, op_.window);
    T* out = out_.At<T>(frame) + head * op_.value_size;
    for (size_t c = 0; c < op_.value_size; ++c) out[c] = WeightedValue(frame, head, c, weights);
  }

  bool IsMasked(const StreamFrame& frame, size_t s) const {
    return op_.masked && tokens_.At<uint32_t>(frame)[SlotOf(frame, s)] == op_.masked->token;
  }

  T Score(const StreamFrame& frame, size_t head, size_t s) const {
    const size_t query_at = QueryAt(head);
    T content;
    if (qkv_.integer()) {
      int64_t sum = 0;
      for (size_t i = 0; i < op_.key_size; ++i) {
        sum += qkv_.Code(frame, query_at + i) * KeyCode(frame, head, s, i);
      }
      content = ScaledSum<T>(sum, qkv_.scale(), keys_.scale());
    } else {
      const T* q = qkv_.Floats(frame) + query_at;
      content = Dot<T>(
          op_.key_size, [q](size_t i) { return q[i]; },
          [&](size_t i) { return Key(frame, head, s, i); });
    }
    return (content + PositionScore(frame, head, s)) * scale_;
  }

  T PositionScore(const StreamFrame& frame, size_t head, size_t s) const {
    const size_t query_at = QueryAt(head);
    const auto query = [&](size_t i) { return qkv_.Value(frame, query_at + i); };
    if (columns_) {
      return Dot<T>(op_.key_size, query,
                    [&](size_t i) { return static_cast<T>(columns_->Value(i, s)); });
    }
    if (!rows_) return T{0};
    const size_t row = rows_->RowOfDistance(op_.window - 1 - s);
    const T* key = rows_->Key(row, head);
    return Dot<T>(op_.key_size, query, [key](size_t i) { return key[i]; }) +
           rows_->Constant(row, head);
  }

  // Slots that are not visible have weight 0, and their values are not read.
  T WeightedValue(const StreamFrame& frame, size_t head, size_t c, const T* weights) const {
    const size_t first = FirstVisible(op_, frame.position);
    if (op_.weights_quantiser) {
      int64_t sum = 0;
      for (size_t s = first; s < op_.window; ++s) {
        sum += int64_t{QuantisedCode(weights[s], *op_.weights_quantiser)} *
               ValueCode(frame, head, s, c);
      }
      return ScaledSum<T>(sum, static_cast<T>(op_.weights_quantiser->scale), values_.scale());
    }
    return Dot<T>(
        op_.window, [&](size_t s) { return weights[s]; },
        [&](size_t s) { return s < first ? T{0} : Value(frame, head, s, c); });
  }

  WindowAttention op_;
  Operand<T> qkv_, keys_, values_;
  SharedWeights columns_;                         // of SlotColumns
  std::shared_ptr<const RelativeTable<T>> rows_;  // of RelativeRows
  std::shared_ptr<const Start> start_;
  Slot weights_, out_, tokens_;
  T scale_;
};

}  // namespace kinglet::ref

#endif  // KINGLET_KERNELS_REF_ATTENTION_H_

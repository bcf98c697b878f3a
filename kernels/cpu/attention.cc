// Sliding-window attention and the neural cache: one query against many stored rows.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "kernels/cpu/bind.h"
#include "kernels/cpu/window_attention.h"

namespace kinglet::cpu {
namespace {

// Attention with SlotColumns. T is the element type of the buffers: int16_t codes, or float.
template <class T>
class WindowAttentionKernel {
 public:
  WindowAttentionKernel(const WindowAttention& op, const BindContext& context)
      : vector_(&context.vector),
        op_(op),
        qkv_(context, op.qkv),
        keys_(context, op.keys),
        values_(context, op.values),
        positions_(context.weights.TransposedReals(std::get<SlotColumns>(op.positions).columns)),
        weights_(context.layout[op.weights]),
        out_(context.layout[op.out]),
        scale_(AttentionScale<float>(op.key_size)) {}

  void operator()(std::span<StreamFrame> frames, Chunks heads) const {
    for (size_t i = 0; i < frames.size(); ++i) {
      StoreKeysAndValues<T>(op_, qkv_, keys_, values_, heads, frames[i]);
      for (size_t head = heads.begin; head < heads.end; ++head) {
        if (i + 1 < frames.size()) {
          FetchPart(VisibleSlots(keys_, frames[i + 1]), head, op_.heads);
          FetchPart(VisibleSlots(values_, frames[i + 1]), head, op_.heads);
        }
        Attend(frames[i], head);
      }
    }
  }
  std::vector<Phase> Phases() && {
    const size_t heads = op_.heads;
    return {{std::move(*this), heads}};
  }
  std::vector<MemoryRange> WeightMemory() const { return positions_->Memory(); }

 private:
  // Where window slots are masked, those that are not are the ring's first ones.
  MemoryRange VisibleSlots(const Operand& ring, const StreamFrame& frame) const {
    const size_t visible = op_.window - FirstVisible(op_, frame.position);
    const size_t count = ring.slot.count / op_.window * visible;
    return std::as_bytes(std::span(ring.slot.template At<T>(frame), count));
  }
  const T* Query(const StreamFrame& frame, size_t head) const {
    return qkv_.slot.At<T>(frame) + head * (2 * op_.key_size + op_.value_size);
  }

  void Attend(StreamFrame& frame, size_t head) const {
    // Window slot s is ring slot (oldest + s) mod window; slots before `first` are masked.
    const size_t window = op_.window;
    const size_t oldest = WindowOf(op_, frame.position).Oldest();
    const size_t first = FirstVisible(op_, frame.position);
    float* weights = weights_.At<float>(frame) + head * window;
    Scores(frame, head, oldest, first, weights);
    std::fill_n(weights, first, 0.0f);
    vector_->softmax(weights, first, window);
    Combine(values_.slot.At<T>(frame) + head * op_.value_size, weights, oldest, first,
            out_.At<float>(frame) + head * op_.value_size);
  }

  // weights[s] = (q . key + q . position) * key_size^-1/2 for every window slot s from `first` on.
  void Scores(const StreamFrame& frame, size_t head, size_t oldest, size_t first,
              float* weights) const {
    const T* query = Query(frame, head);
    const size_t stride = op_.heads * op_.key_size;
    const T* keys = keys_.slot.At<T>(frame) + head * op_.key_size;
    if (first > 0) {
      std::fill_n(weights, first, 0.0f);
      Dots({keys, stride, op_.window - first}, query, weights + first);
    } else {
      const size_t older = op_.window - oldest;  // ring slots oldest.., then 0..oldest
      Dots({keys + oldest * stride, stride, older}, query, weights);
      Dots({keys, stride, oldest}, query, weights + older);
    }

    float positions[kMaxWindow];
    if constexpr (std::is_same_v<T, float>) {
      MultiplyPositions(query, positions);
    } else {
      float reals[kMaxKeySize];
      vector_->dequantise(query, op_.key_size, qkv_.step, reals);
      MultiplyPositions(reals, positions);
    }
    vector_->combine_scores(positions, scale_, op_.window, weights);
  }

  void MultiplyPositions(const float* query, float* out) const {
    const RealVector vector = {query, out};
    vector_->real_product(positions_->real_panels(), &vector, 1, Finish{});
  }

  void Dots(const StridedRows<T>& rows, const T* query, float* out) const {
    if constexpr (std::is_same_v<T, float>) {
      vector_->real_dots(rows, query, op_.key_size, 1.0f, out);
    } else {
      vector_->integer_dots(rows, query, op_.key_size, qkv_.step * keys_.step, 1.0f, out);
    }
  }

  // out = sum over slots of weight * value; `values` is the head's value in ring slot 0. Weights
  // before `first` are 0.
  void Combine(const T* values, const float* weights, size_t oldest, size_t first,
               float* out) const {
    const size_t stride = op_.heads * op_.value_size, older = op_.window - oldest;
    if constexpr (std::is_same_v<T, float>) {
      size_t offsets[kMaxWindow];
      for (size_t s = 0; s < op_.window; ++s) {
        offsets[s] = (s < older ? oldest + s : s - older) * stride;
      }
      vector_->weighted_reals(values, offsets, weights, op_.window, op_.value_size, out);
    } else {
      int16_t codes[kMaxWindow];
      const ActivationQuantiser& quantiser = *op_.weights_quantiser;
      vector_->quantise(weights, op_.window, quantiser.max_abs, quantiser.step, codes);
      const float scale = quantiser.step * values_.step;
      // Integers may be added in any order, so in the order of the ring.
      if (first > 0) {
        vector_->weighted_codes({values, stride, op_.window - first}, codes + first, scale,
                                op_.value_size, out);
        return;
      }
      int16_t ring_codes[kMaxWindow];
      std::memcpy(ring_codes + oldest, codes, older * sizeof(int16_t));
      std::memcpy(ring_codes, codes + older, oldest * sizeof(int16_t));
      vector_->weighted_codes({values, stride, op_.window}, ring_codes, scale, op_.value_size, out);
    }
  }

  const VectorFunctions* vector_;
  WindowAttention op_;
  Operand qkv_, keys_, values_;
  SharedPanels positions_;
  Slot weights_, out_;
  float scale_;
};

template <class T>
class CacheWeightsKernel {
 public:
  CacheWeightsKernel(const CacheWeights& op, const BindContext& context)
      : vector_(&context.vector),
        hidden_(context, op.hidden),
        keys_(context, op.keys),
        weights_(context.layout[op.weights]),
        total_(context.layout[op.total]),
        capacity_(op.capacity),
        first_position_(op.first_position),
        theta_(static_cast<float>(op.theta)) {}

  // Slots that hold no pair yet are in the last chunks.
  std::vector<Phase> Phases() && {
    const size_t chunks = (capacity_ + kChunkSlots - 1) / kChunkSlots;
    return {FramePhase(
                [kernel = *this](StreamFrame& frame, Chunks part) { kernel.Logits(frame, part); },
                chunks),
            FramePhase([kernel = *this](StreamFrame& frame) { kernel.Exponentiate(frame); })};
  }

 private:
  static constexpr size_t kChunkSlots = 32;

  size_t Stored(const StreamFrame& frame) const {
    return CachePairs(frame.position, capacity_, first_position_);
  }

  void Logits(StreamFrame& frame, Chunks chunks) const {
    const size_t begin = chunks.begin * kChunkSlots;
    const size_t end = std::min(chunks.end * kChunkSlots, Stored(frame));
    if (begin >= end) return;
    const size_t n = hidden_.slot.count;
    const T* hidden = hidden_.slot.At<T>(frame);
    float* logits = weights_.At<float>(frame) + begin;
    const StridedRows<T> keys = {keys_.slot.At<T>(frame) + begin * n, n, end - begin};
    if constexpr (std::is_same_v<T, float>) {
      vector_->real_dots(keys, hidden, n, theta_, logits);
    } else {
      vector_->integer_dots(keys, hidden, n, hidden_.step * keys_.step, theta_, logits);
    }
  }

  void Exponentiate(StreamFrame& frame) const {
    const size_t stored = Stored(frame);
    float* weights = weights_.At<float>(frame);
    total_.At<float>(frame)[0] =
        stored == 0 ? 0.0f
                    : vector_->exponentiate(weights, stored, vector_->largest(weights, stored));
  }

  const VectorFunctions* vector_;
  Operand hidden_, keys_;
  Slot weights_, total_;
  uint32_t capacity_;
  uint64_t first_position_;
  float theta_;
};

}  // namespace

Kernel BindOp(const WindowAttention& op, const BindContext& context) {
  if (!std::holds_alternative<SlotColumns>(op.positions)) return BindStreamedAttention(op, context);
  if (op.masked || op.window > kMaxWindow || op.key_size > kMaxKeySize) return {};
  return BindWindowAttention<WindowAttentionKernel>(op, context);
}

Kernel BindOp(const CacheWeights& op, const BindContext& context) {
  const Operand hidden(context, op.hidden), keys(context, op.keys);
  if (hidden.real()) return {CacheWeightsKernel<float>(op, context).Phases()};
  if (!hidden.code16() || !SumFitsInt32(hidden.slot.count, hidden.largest, keys.largest)) return {};
  return {CacheWeightsKernel<int16_t>(op, context).Phases()};
}

}  // namespace kinglet::cpu

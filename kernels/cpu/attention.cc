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
    if (AreOfOneStream(frames)) return AttendInTurn(frames, heads);
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
    Phase phase = {std::move(*this), op_.heads};
    phase.takes_one_stream = true;
    return {std::move(phase)};
  }
  std::vector<MemoryRange> WeightMemory() const { return positions_->Memory(); }

 private:
  // Each token's key and value are stored after the window of the token before was read. A head's
  // rows stay in the first-level cache for all tokens.
  void AttendInTurn(std::span<StreamFrame> tokens, Chunks heads) const {
    for (size_t head = heads.begin; head < heads.end; ++head) {
      for (StreamFrame& frame : tokens) {
        StoreKeysAndValues<T>(op_, qkv_, keys_, values_, {head, head + 1}, frame);
        Attend(frame, head);
      }
    }
  }
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
      const CodeDots dots = {query, out};
      vector_->integer_dots(rows, &dots, 1, op_.key_size, qkv_.step * keys_.step, 1.0f);
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
    Phase logits = {[kernel = *this](std::span<StreamFrame> frames, Chunks part) {
                      if (AreOfOneStream(frames)) {
                        kernel.LogitsOfTokens(frames, part);
                      } else {
                        for (StreamFrame& frame : frames) kernel.Logits(frame, part);
                      }
                    },
                    chunks};
    logits.takes_one_stream = true;
    return {std::move(logits),
            FramePhase([kernel = *this](StreamFrame& frame) { kernel.Exponentiate(frame); })};
  }

 private:
  static constexpr size_t kChunkSlots = 64;
  static constexpr size_t kDotsTogether = 8;

  size_t Stored(const StreamFrame& frame) const {
    return CachePairs(frame.position, capacity_, first_position_);
  }

  void Logits(StreamFrame& frame, Chunks chunks) const {
    const size_t begin = chunks.begin * kChunkSlots;
    const size_t end = std::min(chunks.end * kChunkSlots, Stored(frame));
    if (begin < end) StoredDots(begin, end, {&frame, 1});
  }

  // The ring holds the first token's pairs. A later token sees those that the tokens between have
  // yet to append: their keys are the hidden states of the tokens before them.
  void LogitsOfTokens(std::span<StreamFrame> tokens, Chunks chunks) const {
    for (size_t begin = chunks.begin * kChunkSlots; begin < chunks.end * kChunkSlots;
         begin += kChunkSlots) {
      const size_t end = std::min(begin + kChunkSlots, Stored(tokens.back()));
      if (begin >= end) return;
      StoredDots(begin, end, tokens);
      for (size_t i = 1; i < tokens.size(); ++i) {
        const size_t slot = RingSlot(tokens[i].position - 1, capacity_);
        if (slot < begin || slot >= end) continue;
        Dots({hidden_.slot.At<T>(tokens[i - 1]), hidden_.slot.count, 1}, tokens.subspan(i), slot);
      }
    }
  }

  // The products of the keys in the first token's ring slots [begin, end) with the tokens' hidden
  // states.
  void StoredDots(size_t begin, size_t end, std::span<StreamFrame> tokens) const {
    const size_t n = hidden_.slot.count;
    if (keys_.element == Element::kCode9) {
      const NineBitRow row{n};
      const uint8_t* keys = keys_.slot.At<uint8_t>(tokens.front()) + begin * row.Bytes();
      return CodedDots(tokens, begin, [&](const CodeDots* vectors, size_t count) {
        vector_->nine_bit_dots({keys, row, end - begin}, vectors, count, Scale(), theta_);
      });
    }
    Dots({keys_.slot.At<T>(tokens.front()) + begin * n, n, end - begin}, tokens, begin);
  }

  // The products of keys with the tokens' hidden states, as weights from slot `first` on.
  void Dots(const StridedRows<T>& keys, std::span<StreamFrame> tokens, size_t first) const {
    const size_t n = hidden_.slot.count;
    if constexpr (std::is_same_v<T, float>) {
      for (const StreamFrame& token : tokens) {
        vector_->real_dots(keys, hidden_.slot.At<T>(token), n, theta_,
                           weights_.At<float>(token) + first);
      }
    } else {
      CodedDots(tokens, first, [&](const CodeDots* vectors, size_t count) {
        vector_->integer_dots(keys, vectors, count, n, Scale(), theta_);
      });
    }
  }

  // Calls multiply(vectors, count) for the hidden states of a few tokens at a time.
  template <class Multiply>
  void CodedDots(std::span<StreamFrame> tokens, size_t first, const Multiply& multiply) const {
    CodeDots vectors[kDotsTogether];
    for (size_t begin = 0; begin < tokens.size(); begin += kDotsTogether) {
      const size_t count = std::min(kDotsTogether, tokens.size() - begin);
      for (size_t i = 0; i < count; ++i) {
        const StreamFrame& token = tokens[begin + i];
        vectors[i] = {hidden_.slot.At<int16_t>(token), weights_.At<float>(token) + first};
      }
      multiply(vectors, count);
    }
  }

  float Scale() const { return hidden_.step * keys_.step; }

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
  if (keys.element == Element::kCode9 && hidden.slot.count > kMostNineBitCodes) return {};
  if (!hidden.code16() || !SumFitsInt32(hidden.slot.count, hidden.largest, keys.largest)) return {};
  return {CacheWeightsKernel<int16_t>(op, context).Phases()};
}

}  // namespace kinglet::cpu

// Sliding-window attention and the neural cache: one query against many stored rows.
#include <algorithm>
#include <cstdint>
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
        positions_(context.weights.TransposedFloats(std::get<SlotColumns>(op.positions).columns)),
        weights_(context.layout[op.weights]),
        out_(context.layout[op.out]),
        scale_(AttentionScale<float>(op.key_size)),
        together_(
            std::clamp<size_t>(std::min<size_t>(kMaxWindow / op.window, kMaxKeySize / op.key_size),
                               1, kMostTogether)) {}

  void operator()(std::span<StreamFrame> frames, Chunks heads) const {
    if (AreOfOneStream(frames)) return AttendInTurn(frames, heads);
    for (size_t i = 0; i < frames.size(); ++i) {
      StoreKeys<T>(*vector_, op_, qkv_, keys_, heads, frames[i]);
      StoreValues<T>(*vector_, op_, qkv_, values_, heads, frames[i]);
      const StreamFrame* const next = i + 1 < frames.size() ? &frames[i + 1] : nullptr;
      const auto fetch = [&](const Operand& ring, size_t head) {
        if (next != nullptr) FetchPart(VisibleSlots(ring, *next), head, op_.heads);
      };
      Part parts[kMostTogether];
      for (size_t first = heads.begin; first < heads.end; first += together_) {
        const size_t n = std::min(together_, heads.end - first);
        for (size_t h = 0; h < n; ++h) parts[h] = {&frames[i], first + h};
        Score(std::span(parts).first(n), [&](const Part& part) { fetch(keys_, part.head); });
        for (size_t h = 0; h < n; ++h) {
          fetch(values_, parts[h].head);
          AddUpValues(parts[h]);
        }
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
  // A head of a token, and its keys or values in all ring slots if they were decoded from 9 bits.
  struct Part {
    StreamFrame* frame;
    size_t head;
    const T* decoded = nullptr;
  };
  // Parts are computed several at a time, stage by stage: the stages of one part wait for each
  // other, but those of different parts overlap in the processor.
  static constexpr size_t kMostTogether = 8;

  // A token's key is stored once the previous token has read the keys of its window, and a token's
  // value once the previous token has read the values. All tokens read a head's keys, then its
  // values, so that these rows stay in the first-level cache.
  void AttendInTurn(std::span<StreamFrame> tokens, Chunks heads) const {
    for (size_t head = heads.begin; head < heads.end; ++head) {
      const Chunks alone = {head, head + 1};
      Decoded decoded;
      decoded.Load(*this, keys_, op_.key_size, {&tokens.front(), head});
      Part parts[kMostTogether];
      for (size_t first = 0; first < tokens.size(); first += together_) {
        const size_t n = std::min(together_, tokens.size() - first);
        for (size_t i = 0; i < n; ++i) parts[i] = {&tokens[first + i], head, decoded.rows()};
        Score(std::span(parts).first(n), [&](const Part& part) {
          StoreKeys<T>(*vector_, op_, qkv_, keys_, alone, *part.frame);
          decoded.Store(*this, Query(part) + op_.key_size, *part.frame);
        });
      }
      decoded.Load(*this, values_, op_.value_size, {&tokens.front(), head});
      for (StreamFrame& token : tokens) {
        const Part part = {&token, head, decoded.rows()};
        StoreValues<T>(*vector_, op_, qkv_, values_, alone, token);
        decoded.Store(*this, Query(part) + 2 * size_t{op_.key_size}, token);
        AddUpValues(part);
      }
    }
  }

  // The codes of a head in all slots of a ring of 9-bit codes, decoded once for several tokens.
  // Empty if the ring has other elements, or too many for the stack.
  class Decoded {
   public:
    void Load(const WindowAttentionKernel& kernel, const Operand& ring, size_t size,
              const Part& part) {
      const size_t window = kernel.op_.window;
      size_ = size;
      decoded_ = false;
      if constexpr (std::is_same_v<T, int16_t>) {
        if (ring.element != Element::kCode9 || window * size > kMostDecoded) return;
        kernel.vector_->load_nine_bits(kernel.CodedRows(ring, part, size, window), size, codes_);
        decoded_ = true;
      }
    }
    const T* rows() const { return decoded_ ? codes_ : nullptr; }
    void Store(const WindowAttentionKernel& kernel, const T* from, const StreamFrame& frame) {
      if (!decoded_) return;
      const size_t slot = WindowOf(kernel.op_, frame.position).newest;
      std::copy_n(from, size_, codes_ + slot * size_);
    }

   private:
    static constexpr size_t kMostDecoded = std::is_same_v<T, int16_t> ? 8192 : 1;
    size_t size_ = 0;
    bool decoded_ = false;
    alignas(64) T codes_[kMostDecoded];
  };

  // Computes the weights of one part or more, at most together_. Calls before(part) before the keys
  // of a part are read, in order.
  template <class Before>
  void Score(std::span<const Part> parts, const Before& before) const {
    float dots[kMaxWindow];
    size_t count = 0;
    do {
      before(parts[count]);
      KeyDots(parts[count], dots + count * op_.window);
    } while (++count < parts.size());
    AddPositions(parts, dots);
    for (const Part& part : parts) {
      float* const weights = Weights(part);
      const size_t masked = FirstVisible(op_, part.frame->position);
      std::fill_n(weights, masked, 0.0f);
      vector_->softmax(weights, masked, op_.window);
    }
  }

  // The layout of a ring slot of 9-bit codes.
  NineBitRow RowOf(const Operand& ring) const { return {ring.slot.count / op_.window}; }
  size_t SlotBytes(const Operand& ring) const {
    const NineBitRow row = RowOf(ring);
    return ring.element == Element::kCode9 ? row.Bytes() : row.count * sizeof(T);
  }
  // If some window slots are masked, the visible ones are the ring's first slots.
  MemoryRange VisibleSlots(const Operand& ring, const StreamFrame& frame) const {
    const size_t visible = op_.window - FirstVisible(op_, frame.position);
    return {ring.slot.template At<std::byte>(frame), visible * SlotBytes(ring)};
  }
  // A head's part of the first `count` ring slots, `size` elements of each. `decoded` points to the
  // decoded part of all slots, or is null.
  StridedRows<T> Rows(const Operand& ring, const Part& part, const T* decoded, size_t size,
                      size_t count) const {
    if (decoded != nullptr) return {decoded, size, count};
    const size_t stride = op_.heads * size;
    return {ring.slot.template At<T>(*part.frame) + part.head * size, stride, count};
  }
  // Like Rows, for a ring of 9-bit codes. `size` is a multiple of 8 (runtime/lower).
  NineBitParts CodedRows(const Operand& ring, const Part& part, size_t size, size_t count) const {
    const NineBitRow row = RowOf(ring);
    const uint8_t* const slot = ring.slot.template At<uint8_t>(*part.frame);
    const size_t begin = part.head * size;
    return {slot + begin, slot + row.SignByte(begin), row.Bytes(), count};
  }
  const T* Query(const Part& part) const {
    return qkv_.slot.At<T>(*part.frame) + part.head * (2 * op_.key_size + op_.value_size);
  }
  // The scores of the window slots, which later become their weights.
  float* Weights(const Part& part) const {
    return weights_.At<float>(*part.frame) + part.head * op_.window;
  }

  // dots[i] = q . key of ring slot i, for ring slots that are visible window slots.
  void KeyDots(const Part& part, float* dots) const {
    const size_t n = op_.key_size, count = op_.window - FirstVisible(op_, part.frame->position);
    if constexpr (std::is_same_v<T, float>) {
      vector_->real_dots(Rows(keys_, part, nullptr, n, count), Query(part), n, 1.0f, dots);
    } else {
      const CodeDots query = {Query(part), dots};
      const float scale = qkv_.scale * keys_.scale;
      if (keys_.element == Element::kCode9 && part.decoded == nullptr) {
        vector_->nine_bit_part_dots(CodedRows(keys_, part, n, count), &query, 1, n, scale, 1.0f);
      } else {
        vector_->integer_dots(Rows(keys_, part, part.decoded, n, count), &query, 1, n, scale, 1.0f);
      }
    }
  }

  // weights[s] = (q . key of window slot s + q . position s) * key_size^-1/2 for the slots that are
  // visible. Window slot s is ring slot (oldest + s) mod window; masked slots are the first ones.
  // `dots` are the results of KeyDots for each part.
  void AddPositions(std::span<const Part> parts, const float* dots) const {
    uint64_t first = op_.window;
    for (const Part& part : parts) first = std::min(first, FirstVisible(op_, part.frame->position));
    const PanelRange visible = {first / kPanelRows, positions_->panels()};
    float floats[kMaxKeySize];
    RealVector vectors[kMostTogether];
    for (size_t i = 0; i < parts.size(); ++i) {
      const T* const query = Query(parts[i]);
      vectors[i].y = Weights(parts[i]) + visible.begin * kPanelRows;
      if constexpr (std::is_same_v<T, float>) {
        vectors[i].x = query;
      } else {
        vector_->dequantise(query, op_.key_size, qkv_.scale, floats + i * op_.key_size);
        vectors[i].x = floats + i * op_.key_size;
      }
    }
    vector_->real_product(positions_->real_panels(visible), vectors, parts.size(), Finish{});
    for (size_t i = 0; i < parts.size(); ++i) {
      const float* const of_ring = dots + i * op_.window;
      float* const weights = Weights(parts[i]);
      const size_t oldest = WindowOf(op_, parts[i].frame->position).Oldest();
      const size_t masked = FirstVisible(op_, parts[i].frame->position);
      const auto combine = [&](size_t ring_slot, size_t slot, size_t count) {
        vector_->combine_scores(of_ring + ring_slot, weights + slot, scale_, count, weights + slot);
      };
      if (masked > 0) {
        combine(0, masked, op_.window - masked);
      } else {
        combine(oldest, 0, op_.window - oldest);
        combine(0, op_.window - oldest, oldest);
      }
    }
  }

  // out = sum over slots of weight * value. Weights of masked slots are 0.
  void AddUpValues(const Part& part) const {
    const size_t oldest = WindowOf(op_, part.frame->position).Oldest();
    const size_t first = FirstVisible(op_, part.frame->position);
    const size_t older = op_.window - oldest, size = op_.value_size;
    const float* const weights = Weights(part);
    float* const out = out_.At<float>(*part.frame) + part.head * op_.value_size;
    if constexpr (std::is_same_v<T, float>) {
      size_t offsets[kMaxWindow];
      const StridedRows<T> rows = Rows(values_, part, nullptr, size, op_.window);
      for (size_t s = 0; s < op_.window; ++s) {
        offsets[s] = (s < older ? oldest + s : s - older) * rows.stride;
      }
      vector_->weighted_floats(rows.data, offsets, weights, op_.window, size, out);
    } else {
      int16_t codes[kMaxWindow];
      const ActivationQuantiser& quantiser = *op_.weights_quantiser;
      const auto quantise = [&](size_t slot, size_t count, int16_t* to) {
        vector_->quantise(weights + slot, count, quantiser.max_abs, quantiser.scale, to);
      };
      // Integers may be added in any order, so the ring's order will do.
      if (first > 0) {
        quantise(first, op_.window - first, codes);
      } else {
        quantise(0, older, codes + oldest);
        quantise(older, oldest, codes);
      }
      const size_t visible = op_.window - first;
      const float scale = quantiser.scale * values_.scale;
      if (values_.element == Element::kCode9 && part.decoded == nullptr) {
        vector_->weighted_nine_bits(CodedRows(values_, part, size, visible), codes, scale, size,
                                    out);
      } else {
        vector_->weighted_codes(Rows(values_, part, part.decoded, size, visible), codes, scale,
                                size, out);
      }
    }
  }

  const VectorFunctions* vector_;
  WindowAttention op_;
  Operand qkv_, keys_, values_;
  SharedPanels positions_;
  Slot weights_, out_;
  float scale_;
  size_t together_;  // how many parts AddPositions has memory for
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

  // Slots without a pair yet are in the last chunks.
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
            FramePhase([kernel = *this](StreamFrame& frame) { kernel.Weigh(frame); })};
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

  // The ring contains the pairs that the first token sees. A later token also sees pairs that the
  // tokens since then have yet to append. The key of such a pair is the previous token's hidden
  // state.
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

  float Scale() const { return hidden_.scale * keys_.scale; }

  void Weigh(StreamFrame& frame) const {
    const size_t stored = Stored(frame);
    float* weights = weights_.At<float>(frame);
    total_.At<float>(frame)[0] = stored == 0 ? 0.0f : vector_->cache_weights(weights, stored);
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
  const auto in_whole_bytes = [&](BufferId ring, uint32_t size) {
    return context.plan.buffer(ring).element != Element::kCode9 || size % 8 == 0;
  };
  if (!in_whole_bytes(op.keys, op.key_size) || !in_whole_bytes(op.values, op.value_size)) return {};
  return BindWindowAttention<WindowAttentionKernel>(op, context);
}

Kernel BindOp(const CacheWeights& op, const BindContext& context) {
  const Operand hidden(context, op.hidden), keys(context, op.keys);
  if (hidden.real()) return {CacheWeightsKernel<float>(op, context).Phases()};
  if (keys.element == Element::kCode9 && hidden.slot.count > NineBitRow::kMostCodes) return {};
  if (!hidden.code16() || !SumFitsInt32(hidden.slot.count, hidden.largest, keys.largest)) return {};
  return {CacheWeightsKernel<int16_t>(op, context).Phases()};
}

}  // namespace kinglet::cpu

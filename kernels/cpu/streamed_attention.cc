// Attention over long windows, with or without relative positions. Keys, values and the rows of
// distances are read from front to back, all heads of a slot together, while the sums of values
// stay in the processor's cache.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "kernels/cpu/bind.h"
#include "kernels/cpu/relative_rows.h"
#include "kernels/cpu/window_attention.h"
#include "kernels/ref/quantise.h"

namespace kinglet::cpu {
namespace {

// Columns of values that are summed together: their chains fit in the first-level cache, with the
// sums of tiles where a window has several.
constexpr size_t kPassColumns = 512, kPassColumnsOfTiles = 256;
// Heads whose values are summed together.
constexpr size_t kPassHeads = 64;
constexpr size_t kMostHeads = 1024;
size_t PassColumns(const WindowAttention& op) {
  return op.window > kSumTile ? kPassColumnsOfTiles : kPassColumns;
}

// A run of window slots whose rows lie one after the other, or which all have one row in common.
template <class T>
struct Run {
  size_t first, count;  // window slots
  const T* keys;        // [heads, key_size] of slot `first`
  const T* values;      // [heads, value_size] of slot `first`
  bool repeated;
};

// T is the element type of the buffers: int16_t codes, or float.
template <class T>
class StreamedAttentionKernel {
 public:
  static constexpr bool kFloats = std::is_same_v<T, float>;

  StreamedAttentionKernel(const WindowAttention& op, const BindContext& context)
      : vector_(&context.vector),
        op_(op),
        qkv_(context, op.qkv),
        keys_(context, op.keys),
        values_(context, op.values),
        weights_(context.layout[op.weights]),
        out_(context.layout[op.out]),
        tokens_(op.masked ? context.layout[op.masked->tokens] : Slot{}),
        scale_(AttentionScale<float>(op.key_size)) {
    if (const auto* relative = std::get_if<RelativeRows>(&op.positions)) {
      table_ = MakeRelativeTable(*relative, op.heads, op.key_size, op.window, context);
    }
    if (op.start_row) {
      std::vector<T> start;
      context.weights.Claim(Count(context.plan.weights[*op.start_row].shape) * sizeof(T));
      for (const float value : DecodedValues(context.plan.weights[*op.start_row])) {
        if constexpr (kFloats) {
          start.push_back(value);
        } else {
          const auto& quantiser = *context.plan.buffer(op.qkv).quantiser;
          start.push_back(static_cast<T>(ref::QuantisedCode(value, quantiser)));
        }
      }
      start_ = std::make_shared<const std::vector<T>>(std::move(start));
    }
  }

  void operator()(StreamFrame& frame) const {
    StoreKeys<T>(*vector_, op_, qkv_, keys_, {0, op_.heads}, frame);
    StoreValues<T>(*vector_, op_, qkv_, values_, {0, op_.heads}, frame);
    const std::array<Run<T>, 3> runs = Runs(frame);
    float* weights = weights_.At<float>(frame);
    const size_t first = FirstVisible(op_, frame.position);
    for (const Run<T>& run : runs) ContentScores(frame, run, weights);
    PositionScores(frame, first, weights);
    if (op_.masked) MaskScores(frame, first, weights);
    for (size_t head = 0; head < op_.heads; ++head) {
      vector_->softmax(weights + head * op_.window, first, op_.window);
    }
    const size_t head_count = std::clamp<size_t>(PassColumns(op_) / op_.value_size, 1, kPassHeads);
    for (size_t head = 0; head < op_.heads; head += head_count) {
      SumValues(runs, weights, first, head, std::min<size_t>(head_count, op_.heads - head),
                out_.At<float>(frame));
    }
  }
  std::vector<Phase> Phases() && { return EachFrame(std::move(*this)); }
  std::vector<MemoryRange> WeightMemory() const {
    std::vector<MemoryRange> memory;
    if (table_) memory = table_->Memory();
    if (start_) memory.push_back(std::as_bytes(std::span(*start_)));
    return memory;
  }

 private:
  size_t QueryStride() const { return 2 * size_t{op_.key_size} + op_.value_size; }
  HeadVectors<T> Queries(const StreamFrame& frame) const {
    return {qkv_.slot.At<T>(frame), QueryStride()};
  }
  size_t KeyRow() const { return size_t{op_.heads} * op_.key_size; }
  size_t ValueRow() const { return size_t{op_.heads} * op_.value_size; }

  // The visible slots, oldest first: slots with the start row, then two parts of the ring. Without
  // a start row, the zeros in the ring are read.
  std::array<Run<T>, 3> Runs(const StreamFrame& frame) const {
    const T* keys = keys_.slot.At<T>(frame);
    const T* values = values_.slot.At<T>(frame);
    const size_t window = op_.window, visible = FirstVisible(op_, frame.position);
    const RingWindow ring = WindowOf(op_, frame.position);
    const size_t from = start_ ? ring.FirstFilled() : visible;
    const T* start = start_ ? start_->data() : keys;
    const size_t oldest = ring.Slot(static_cast<uint32_t>(from));
    const size_t older = std::min(window - oldest, window - from);
    return {{{visible, from - visible, start, start + KeyRow(), true},
             {from, older, keys + oldest * KeyRow(), values + oldest * ValueRow(), false},
             {from + older, window - from - older, keys, values, false}}};
  }

  // weights[h][s] = q . key.
  void ContentScores(const StreamFrame& frame, const Run<T>& run, float* weights) const {
    const size_t distinct = run.repeated ? std::min<size_t>(run.count, 1) : run.count;
    const HeadRows<T> rows = {run.keys, KeyRow(), distinct, op_.heads, op_.key_size};
    float* scores = weights + run.first;
    if constexpr (kFloats) {
      vector_->real_head_dots(rows, Queries(frame), op_.window, scores);
    } else {
      vector_->integer_head_dots(rows, Queries(frame), qkv_.scale * keys_.scale, op_.window,
                                 scores);
    }
    if (distinct == run.count) return;
    for (size_t head = 0; head < op_.heads; ++head) {
      float* score = scores + head * op_.window;
      std::fill_n(score, run.count, score[0]);
    }
  }

  // Adds the terms of positions to the scores of slots [first, window) and scales them.
  void PositionScores(const StreamFrame& frame, size_t first, float* weights) const {
    const size_t window = op_.window, heads = op_.heads, key_size = op_.key_size;
    if (!table_) {
      for (size_t head = 0; head < heads; ++head) {
        vector_->scale(scale_, window - first, weights + head * window + first);
      }
      return;
    }
    float floats[kMaxColumns];
    HeadVectors<float> queries = {floats, key_size};
    if constexpr (kFloats) {
      queries = Queries(frame);
    } else {
      for (size_t head = 0; head < heads; ++head) {
        vector_->dequantise(qkv_.slot.At<T>(frame) + head * QueryStride(), key_size, qkv_.scale,
                            floats + head * key_size);
      }
    }
    // Slots before `clamped` are as far away as the oldest row.
    const size_t clamped = window - table_->rows;
    if (first < clamped) {
      float shifts[kMostHeads];
      vector_->real_head_dots({table_->keys.data(), KeyRow(), 1, heads, key_size}, queries, 1,
                              shifts);
      for (size_t head = 0; head < heads; ++head) {
        vector_->shift_and_scale(shifts[head] + table_->constants[head], scale_, clamped - first,
                                 weights + head * window + first);
      }
    }
    const size_t from = std::max(first, clamped);
    const size_t row = from - clamped;
    vector_->add_relative_scores(
        {table_->keys.data() + row * KeyRow(), KeyRow(), window - from, heads, key_size},
        table_->constants.data() + row * heads, queries, scale_, window, weights + from);
  }

  // Stores the token, and sets the scores of slots with masked tokens.
  void MaskScores(const StreamFrame& frame, size_t first, float* weights) const {
    const RingWindow ring = WindowOf(op_, frame.position);
    uint32_t* tokens = tokens_.At<uint32_t>(frame);
    tokens[ring.newest] = frame.token;
    for (size_t s = first; s < op_.window; ++s) {
      if (tokens[ring.Slot(static_cast<uint32_t>(s))] != op_.masked->token) continue;
      for (size_t head = 0; head < op_.heads; ++head) weights[head * op_.window + s] = kMaskedScore;
    }
  }

  // out[h] = sum over slots of weight * value for heads [head, head + count). Slots before `first`
  // are not visible and not read.
  void SumValues(const std::array<Run<T>, 3>& runs, const float* weights, size_t first, size_t head,
                 size_t count, float* out) const {
    if constexpr (kFloats) {
      SumFloats(runs, weights + head * op_.window, first, head, count, out + head * op_.value_size);
    } else {
      SumCodes(runs, weights + head * op_.window, first, head, count, out + head * op_.value_size);
    }
  }

  // Calls use(rows, first slot) for each part of the runs that lies in window slots [begin, end).
  template <class Use>
  void ForEachChunk(const std::array<Run<T>, 3>& runs, size_t begin, size_t end, size_t head,
                    size_t count, const Use& use) const {
    for (const Run<T>& run : runs) {
      const size_t from = std::max(begin, run.first);
      const size_t to = std::min(end, run.first + run.count);
      if (from >= to) continue;
      const size_t stride = run.repeated ? 0 : ValueRow();
      const T* values = run.values + (from - run.first) * stride + head * op_.value_size;
      use(HeadRows<T>{values, stride, to - from, count, op_.value_size}, from);
    }
  }

  void SumFloats(const std::array<Run<T>, 3>& runs, const float* weights, size_t first, size_t head,
                 size_t count, float* out) const {
    const size_t window = op_.window, columns = count * op_.value_size;
    const size_t chains = window < kShortSum ? 1 : kSumChains;
    // The chains, then the results of tiles, folded pairwise as they come.
    alignas(64) float sums[(kSumChains + 1) * kPassColumns];
    constexpr size_t kDepth = 12;  // 2^20 slots are 2^10 tiles
    static_assert((kSumChains + kDepth) * kPassColumnsOfTiles <= std::size(sums));
    float* const folded = sums + kSumChains * columns;
    size_t depth = 0, tiles = 0;
    for (size_t begin = 0; begin < window; begin += kSumTile, ++tiles) {
      const size_t end = std::min(window, begin + kSumTile);
      // A tile of zeros sums to +0 with any number of chains.
      const size_t used = end <= first ? 1 : chains;
      std::fill_n(sums, used * columns, 0.0f);
      ForEachChunk(runs, begin, end, head, count, [&](const HeadRows<T>& rows, size_t from) {
        vector_->add_weighted_floats(rows, weights + from, window, from - begin, chains, sums);
      });
      for (size_t half = used / 2; half > 0; half /= 2) {
        vector_->add(sums + half * columns, half * columns, sums);
      }
      for (size_t merged = tiles; (merged & 1) != 0; merged >>= 1) {
        vector_->add(folded + --depth * columns, columns, sums);
      }
      std::copy_n(sums, columns, folded + depth++ * columns);
    }
    while (--depth > 0)
      vector_->add(folded + depth * columns, columns, folded + (depth - 1) * columns);
    std::copy_n(folded, columns, out);
  }

  void SumCodes(const std::array<Run<T>, 3>& runs, const float* weights, size_t first, size_t head,
                size_t count, float* out) const {
    constexpr size_t kSlots = 64;  // slots whose weights are rounded together
    const ActivationQuantiser& quantiser = *op_.weights_quantiser;
    const size_t columns = count * op_.value_size;
    alignas(64) int32_t sums[kPassColumns] = {};
    alignas(64) int16_t codes[kPassHeads * kSlots];
    for (size_t begin = first; begin < op_.window; begin += kSlots) {
      const size_t end = std::min<size_t>(op_.window, begin + kSlots);
      for (size_t h = 0; h < count; ++h) {
        vector_->quantise(weights + h * op_.window + begin, end - begin, quantiser.max_abs,
                          quantiser.scale, codes + h * kSlots);
      }
      ForEachChunk(runs, begin, end, head, count, [&](const HeadRows<T>& rows, size_t from) {
        vector_->add_weighted_codes(rows, codes + (from - begin), kSlots, sums);
      });
    }
    vector_->rescale_sums(sums, columns, quantiser.scale * values_.scale, out);
  }

  const VectorFunctions* vector_;
  WindowAttention op_;
  Operand qkv_, keys_, values_;
  std::shared_ptr<const RelativeTable> table_;   // null without relative positions
  std::shared_ptr<const std::vector<T>> start_;  // keys, then values of one slot
  Slot weights_, out_, tokens_;
  float scale_;
};

}  // namespace

Kernel BindStreamedAttention(const WindowAttention& op, const BindContext& context) {
  if (op.value_size > PassColumns(op) || op.heads > kMostHeads ||
      uint64_t{op.heads} * op.key_size > kMaxColumns) {
    return {};
  }
  for (const BufferId ring : {op.keys, op.values}) {
    if (context.plan.buffer(ring).element == Element::kCode9) return {};
  }
  return BindWindowAttention<StreamedAttentionKernel>(op, context);
}

}  // namespace kinglet::cpu

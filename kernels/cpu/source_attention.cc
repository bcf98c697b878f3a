// Attention to the tokens of a source, in encoders and in cross-attention.
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/cpu/bind.h"
#include "kernels/ref/source.h"

namespace kinglet::cpu {
namespace {

// T is the element type of the buffers: int16_t codes, or float.
template <class T>
class SourceAttentionKernel {
 public:
  SourceAttentionKernel(const SourceAttention& op, const BindContext& context)
      : vector_(&context.vector),
        op_(op),
        query_(context, op.query),
        memory_(context, op.memory),
        weights_(context.layout[op.weights]),
        out_(context.layout[op.out]),
        scale_(ScoreScale<float>(op)),
        query_stride_(query_.slot.count / op.heads),
        slot_stride_(memory_.slot.count / op.window / op.heads),
        for_long_sources_(op, context.plan, context.layout) {}

  void operator()(StreamFrame& frame, Chunks heads) const {
    const bool is_long = frame.source_length > kMaxWindow;
    for (size_t head = heads.begin; head < heads.end; ++head) {
      is_long ? for_long_sources_.Attend(frame, head) : Attend(frame, head);
    }
  }
  std::vector<Phase> Phases() && {
    const size_t heads = op_.heads;
    return {FramePhase(std::move(*this), heads)};
  }

 private:
  void Attend(const StreamFrame& frame, size_t head) const {
    const size_t n = frame.source_length, stride = op_.heads * slot_stride_;
    const T* query = query_.slot.At<T>(frame) + head * query_stride_;
    const T* values =
        memory_.slot.At<T>(frame) + (head + 1) * slot_stride_ - op_.value_size;  // in slot 0
    const StridedRows<T> keys = {values + op_.value_size - KeyFromEnd(op_), stride, n};
    float* weights = weights_.At<float>(frame) + head * op_.window;
    float* out = out_.At<float>(frame) + head * op_.value_size;
    if constexpr (std::is_same_v<T, float>) {
      vector_->real_dots(keys, query, op_.key_size, scale_, weights);
      vector_->softmax(weights, 0, n);
      size_t offsets[kMaxWindow];
      for (size_t s = 0; s < n; ++s) offsets[s] = s * stride;
      vector_->weighted_floats(values, offsets, weights, n, op_.value_size, out);
    } else {
      const CodeDots dots = {query, weights};
      vector_->integer_dots(keys, &dots, 1, op_.key_size, query_.scale * memory_.scale, scale_);
      vector_->softmax(weights, 0, n);
      int16_t codes[kMaxWindow];
      const ActivationQuantiser& quantiser = *op_.weights_quantiser;
      vector_->quantise(weights, n, quantiser.max_abs, quantiser.scale, codes);
      vector_->weighted_codes({values, stride, n}, codes, quantiser.scale * memory_.scale,
                              op_.value_size, out);
    }
  }

  const VectorFunctions* vector_;
  SourceAttention op_;
  Operand query_, memory_;
  Slot weights_, out_;
  float scale_;
  size_t query_stride_, slot_stride_;  // of a head, in elements
  ref::SourceAttentionKernel<float> for_long_sources_;
};

}  // namespace

Kernel BindOp(const SourceAttention& op, const BindContext& context) {
  if (op.score == SourceScore::kAdditive) return {};
  const Operand query(context, op.query), memory(context, op.memory);
  if (query.real()) return {SourceAttentionKernel<float>(op, context).Phases()};
  if (!query.code16() || !memory.code16()) return {};
  const int64_t largest_weight = LargestCode(*op.weights_quantiser);
  if (largest_weight > std::numeric_limits<int16_t>::max() ||
      !SumFitsInt32(op.key_size, query.largest, memory.largest) ||
      !SumFitsInt32(op.window, largest_weight, memory.largest)) {
    return {};
  }
  return {SourceAttentionKernel<int16_t>(op, context).Phases()};
}

}  // namespace kinglet::cpu

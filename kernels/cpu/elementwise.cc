// Element-wise operations, and the neural cache's CacheAppend.
#include <cstring>
#include <span>

#include "kernels/cpu/bind.h"
#include "kernels/functions.h"
#include "kernels/nine_bit_row.h"

namespace kinglet::cpu {

Kernel BindOp(const LayerNorm& op, const BindContext& context) {
  const SharedVector gain = context.weights.Vector(op.gain), bias = context.weights.Vector(op.bias);
  return {EachFrame([vector = &context.vector, x = context.layout[op.x], y = context.layout[op.y],
                     gain, bias, epsilon = static_cast<float>(op.epsilon)](StreamFrame& frame) {
            vector->layer_norm(x.At<float>(frame), x.count, gain->data(), bias->data(), epsilon,
                               y.At<float>(frame));
          }),
          {std::as_bytes(std::span(*gain)), std::as_bytes(std::span(*bias))}};
}

Kernel BindOp(const Quantise& op, const BindContext& context) {
  const Operand codes(context, op.codes);
  if (!codes.code16()) return {};
  return {EachFrame([vector = &context.vector, x = context.layout[op.x], slot = codes.slot,
                     quantiser = *context.plan.buffer(op.codes).quantiser](StreamFrame& frame) {
    vector->quantise(x.At<float>(frame), x.count, quantiser.max_abs, quantiser.scale,
                     slot.At<int16_t>(frame));
  })};
}

Kernel BindOp(const Add& op, const BindContext& context) {
  const Operand x(context, op.x);
  const Slot y = context.layout[op.y];
  if (x.real()) {
    return {EachFrame([vector = &context.vector, x = x.slot, y](StreamFrame& frame) {
      vector->add(x.At<float>(frame), y.count, y.At<float>(frame));
    })};
  }
  if (!x.code16()) return {};
  return {EachFrame([vector = &context.vector, x, y](StreamFrame& frame) {
    vector->add_codes(x.slot.At<int16_t>(frame), x.scale, y.count, y.At<float>(frame));
  })};
}

// One addition for each logit, whose product has cost far more: the reference's loop is fast
// enough.
Kernel BindOp(const AddScalar&, const BindContext&) { return {}; }

// Vectorised for the functions that models compute for every token. Other functions are applied to
// few vectors: the reference's loops are fast enough.
Kernel BindOp(const ApplyActivation& op, const BindContext& context) {
  const auto function = [&]() -> void (*)(const float*, size_t, float*) {
    switch (op.activation) {
      case Activation::kTanh:
        return context.vector.tangents;
      case Activation::kGelu:
        return context.vector.gelus;
      case Activation::kSwish:
        return context.vector.swishes;
      case Activation::kTanhGelu:
        return context.vector.tanh_gelus;
      default:
        return nullptr;
    }
  }();
  if (function == nullptr) return {};
  return {EachFrame([function, x = context.layout[op.x]](StreamFrame& frame) {
    function(x.At<float>(frame), x.count, x.At<float>(frame));
  })};
}

Kernel BindOp(const CacheAppend& op, const BindContext& context) {
  const BufferSpec& keys = context.plan.buffer(op.keys);
  const bool nine_bits = keys.element == Element::kCode9;
  return {EachFrame(
      [hidden = context.layout[op.hidden], keys = context.layout[op.keys],
       tokens = context.layout[op.tokens], capacity = op.capacity, nine_bits,
       row_bytes = BytesOf(keys, keys.count / op.capacity, sizeof(float))](StreamFrame& frame) {
        if (frame.position == 0) return;
        const size_t slot = RingSlot(frame.position - 1, capacity);
        std::byte* const key = keys.At<std::byte>(frame) + slot * row_bytes;
        if (nine_bits) {
          const auto* codes = hidden.At<int16_t>(frame);
          NineBitRow{hidden.count}.Store([codes](uint64_t i) { return codes[i]; },
                                         reinterpret_cast<uint8_t*>(key));
        } else {
          std::memcpy(key, hidden.At<std::byte>(frame), row_bytes);
        }
        tokens.At<uint32_t>(frame)[slot] = frame.token;
      })};
}

}  // namespace kinglet::cpu

// Absolute positions, and the queries' bias of relative ones.
#include <memory>
#include <span>
#include <vector>

#include "format/row_reader.h"
#include "kernels/cpu/bind.h"
#include "kernels/sinusoids.h"

namespace kinglet::cpu {

Kernel BindOp(const AddPositionRow& op, const BindContext& context) {
  if (Cols(context.plan.weights[op.table].shape) > kMaxColumns) return {};
  context.weights.Keep(op.table);
  const auto table = std::make_shared<const RowReader>(context.plan.weights[op.table]);
  return {EachFrame([vector = &context.vector, table, y = context.layout[op.y],
                     window = op.window](StreamFrame& frame) {
            float row[kMaxColumns];
            table->Floats(RingSlot(frame.position, window), row);
            vector->add(row, y.count, y.At<float>(frame));
          }),
          {},
          {},
          [table, window = op.window](uint64_t position) {
            const uint64_t row = RingSlot(position, window);
            return table->Memory(row, row + 1);
          }};
}

Kernel BindOp(const AddSinusoids& op, const BindContext& context) {
  const SharedVector frequencies = context.weights.Vector(op.frequencies);
  const size_t count = Cols(context.plan.weights[op.frequencies].shape);
  return {EachFrame([frequencies, count, y = context.layout[op.y], first = op.first,
                     window = op.window](StreamFrame& frame) {
            const auto place = static_cast<uint32_t>(RingSlot(frame.position, window));
            AddAbsoluteSinusoids(std::span(frequencies->data(), count), first + place,
                                 y.At<float>(frame));
          }),
          {std::as_bytes(std::span(*frequencies))}};
}

Kernel BindOp(const AddQueryBias& op, const BindContext& context) {
  const TensorView& view = context.plan.weights[op.bias];
  const SharedVector bias = context.weights.Vector(op.bias);
  return {EachFrame([vector = &context.vector, bias, y = context.layout[op.y],
                     heads = Rows(view.shape), key_size = Cols(view.shape)](StreamFrame& frame) {
            const size_t stride = y.count / heads;
            for (size_t head = 0; head < heads; ++head) {
              vector->add(bias->data() + head * key_size, key_size,
                          y.At<float>(frame) + head * stride);
            }
          }),
          {std::as_bytes(std::span(bias->data(), Count(view.shape)))}};
}

}  // namespace kinglet::cpu

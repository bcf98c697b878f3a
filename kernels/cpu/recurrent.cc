// The element-wise part of recurrent cells.
#include <optional>

#include "kernels/cpu/bind.h"

namespace kinglet::cpu {

Kernel BindOp(const LstmGates& op, const BindContext& context) {
  return {EachFrame([vector = &context.vector, input = context.layout[op.input],
                     recurrent = context.layout[op.recurrent], cell = context.layout[op.cell],
                     hidden = context.layout[op.hidden]](StreamFrame& frame) {
    vector->lstm_gates(input.At<float>(frame), recurrent.At<float>(frame), hidden.count,
                       cell.At<float>(frame), hidden.At<float>(frame));
  })};
}

Kernel BindOp(const GruGates& op, const BindContext& context) {
  return {EachFrame([vector = &context.vector, input = context.layout[op.input],
                     recurrent = context.layout[op.recurrent],
                     hidden = context.layout[op.hidden]](StreamFrame& frame) {
    vector->gru_gates(input.At<float>(frame), recurrent.At<float>(frame), hidden.count,
                      hidden.At<float>(frame));
  })};
}

Kernel BindOp(const RnnGates& op, const BindContext& context) {
  return {EachFrame([vector = &context.vector, input = context.layout[op.input],
                     recurrent = context.layout[op.recurrent], hidden = context.layout[op.hidden],
                     relu = op.relu](StreamFrame& frame) {
    vector->rnn_gates(input.At<float>(frame), recurrent.At<float>(frame), hidden.count, relu,
                      hidden.At<float>(frame));
  })};
}

Kernel BindOp(const QrnnGates& op, const BindContext& context) {
  std::optional<Slot> previous;
  if (op.previous) previous = context.layout[*op.previous];
  return {EachFrame([vector = &context.vector, input = context.layout[op.input], previous,
                     cell = context.layout[op.cell],
                     hidden = context.layout[op.hidden]](StreamFrame& frame) {
    vector->qrnn_gates(input.At<float>(frame), previous ? previous->At<float>(frame) : nullptr,
                       hidden.count, cell.At<float>(frame), hidden.At<float>(frame));
  })};
}

}  // namespace kinglet::cpu

// How WindowAttention and SourceAttention become device nodes (attention.h).
#include "kernels/cuda/attention.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "format/encoding.h"
#include "format/overloaded.h"
#include "kernels/cuda/bind.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/relative_rows.h"
#include "kernels/nine_bit_row.h"
#include "kernels/numerics.h"
#include "kernels/ref/quantise.h"

namespace kinglet::cuda {
namespace {

// The arguments that both kinds of attention have in common. `keys` and `values` are the buffers of
// head 0; the caller sets the strides, and moves `keys` and `values` if head 0 begins elsewhere.
template <class Op>
Result<Attention> CommonOf(const Op& op, BufferId query, BufferId keys, BufferId values,
                           Binder& binder) {
  const BufferSpec& query_buffer = binder.plan.buffer(query);
  const BufferSpec& key_buffer = binder.plan.buffer(keys);
  const BufferSpec& value_buffer = binder.plan.buffer(values);
  Attention made{};
  made.query = binder.At(query);
  made.keys = binder.At(keys);
  made.values = binder.At(values);
  made.weights = binder.At(op.weights);
  made.out = binder.At(op.out);
  made.scale = AttentionScale<float>(op.key_size);
  made.heads = op.heads;
  made.key_size = op.key_size;
  made.value_size = op.value_size;
  made.window = made.ring = op.window;
  made.query_stride = binder.Count(query) / op.heads;
  made.codes = query_buffer.element == Element::kCode16;
  if (made.codes != op.weights_quantiser.has_value()) {
    return binder.Refuse("a quantiser of the weights if and only if the query is codes",
                         made.codes ? "codes without a quantiser" : "floats with a quantiser");
  }
  if (!made.codes) return made;
  const ActivationQuantiser& of_weights = *op.weights_quantiser;
  if (LargestCode(of_weights) > INT16_MAX) {
    return binder.Refuse("a quantiser of the weights of at most 16 bits",
                         "codes up to " + std::to_string(LargestCode(of_weights)));
  }
  made.rounding = {of_weights.max_abs, of_weights.scale};
  made.query_scale = query_buffer.quantiser->scale;
  made.content_scale = query_buffer.quantiser->scale * key_buffer.quantiser->scale;
  made.value_scale = of_weights.scale * value_buffer.quantiser->scale;
  made.fits_int32 =
      SumFitsInt32(op.key_size, LargestCode(*query_buffer.quantiser),
                   LargestCode(*key_buffer.quantiser)) &&
      SumFitsInt32(op.window, LargestCode(of_weights), LargestCode(*value_buffer.quantiser));
  return made;
}

std::vector<Node> NodesOf(const Attention& attention, Binder& binder) {
  const Place scores = binder.TemporaryOfNode<float>(uint64_t{attention.heads} * attention.window);
  return {MakeNode(ScoreSlots{{attention, scores}}), MakeNode(WeighValues{{attention, scores}})};
}

// The columns [key_size, window], unchanged for short keys, else as rows [window, key_size], so
// that the threads of one slot read neighbouring floats.
Result<PositionRows> SlotRows(const SlotColumns& op, const WindowAttention& attention,
                              Binder& binder) {
  const std::vector<float> columns = DecodedValues(binder.plan.weights[op.columns]);
  PositionRows made;
  made.count = attention.window;
  if (attention.key_size < kShortSum) {
    made.in_columns = true;
    KINGLET_ASSIGN_OR_RETURN(made.rows, binder.weights.Constants(std::span<const float>(columns)));
    return made;
  }
  std::vector<float> rows(columns.size());
  for (uint64_t i = 0; i < attention.key_size; ++i) {
    for (uint64_t s = 0; s < attention.window; ++s) {
      rows[s * attention.key_size + i] = columns[i * attention.window + s];
    }
  }
  KINGLET_ASSIGN_OR_RETURN(made.rows, binder.weights.Constants(std::span<const float>(rows)));
  return made;
}

// The start row as elements: floats, or codes by the quantiser of qkv.
Result<const void*> StartRow(WeightId id, const Attention& attention, const BufferSpec& qkv,
                             Binder& binder) {
  if (!attention.codes) {
    KINGLET_ASSIGN_OR_RETURN(const float* const floats, binder.weights.Floats(id));
    return static_cast<const void*>(floats);
  }
  std::vector<int16_t> codes;
  for (const float value : DecodedValues(binder.plan.weights[id])) {
    codes.push_back(static_cast<int16_t>(ref::QuantisedCode(value, *qkv.quantiser)));
  }
  KINGLET_ASSIGN_OR_RETURN(const int16_t* const made,
                           binder.weights.Constants(std::span<const int16_t>(codes)));
  return static_cast<const void*>(made);
}

// The row of slots that no token has filled, which without a start row are zeros.
Result<const void*> ZeroRow(const Attention& attention, Binder& binder) {
  const uint64_t elements = uint64_t{attention.heads} * (attention.key_size + attention.value_size);
  const std::vector<std::byte> zeros(
      std::max({elements * sizeof(float), NineBitRow{attention.key_row}.Bytes(),
                NineBitRow{attention.value_row}.Bytes()}));
  KINGLET_ASSIGN_OR_RETURN(const std::byte* const made,
                           binder.weights.Constants(std::span<const std::byte>(zeros)));
  return static_cast<const void*>(made);
}

// Attention::key_row or value_row of a ring whose heads have parts of `size` codes.
Result<uint32_t> RowOf(BufferId ring, uint32_t size, const WindowAttention& op, Binder& binder) {
  const BufferSpec& buffer = binder.plan.buffer(ring);
  if (buffer.element != Element::kCode9) return uint32_t{0};
  if (size % 8 != 0 || op.start_row) {
    return binder.Refuse(
        "heads of a multiple of 8 codes and no start row if codes have 9 bits",
        std::to_string(size) + (op.start_row ? " codes and a start row" : " codes"));
  }
  return static_cast<uint32_t>(buffer.row);
}

}  // namespace

Nodes BindOp(const WindowAttention& op, Binder& binder) {
  KINGLET_ASSIGN_OR_RETURN(Attention made, CommonOf(op, op.qkv, op.keys, op.values, binder));
  made.key_stride = op.key_size;
  made.value_stride = op.value_size;
  KINGLET_ASSIGN_OR_RETURN(made.key_row, RowOf(op.keys, op.key_size, op, binder));
  KINGLET_ASSIGN_OR_RETURN(made.value_row, RowOf(op.values, op.value_size, op, binder));
  made.ring = binder.Count(op.keys) / (op.heads * op.key_size);
  made.masked = op.start != StreamStart::kZeros;
  made.restarts = op.restarts;
  if (op.masked) {
    static_assert(kMaskedTokenScore == kMaskedScore);
    made.masks_token = true;
    made.masked_token = op.masked->token;
    made.tokens = binder.At(op.masked->tokens);
  }
  KINGLET_ASSIGN_OR_RETURN(
      made.positions,
      std::visit(Overloaded{[](std::monostate) -> Result<PositionRows> { return PositionRows(); },
                            [&](const SlotColumns& columns) -> Result<PositionRows> {
                              return SlotRows(columns, op, binder);
                            },
                            [&](const RelativeRows& relative) -> Result<PositionRows> {
                              return MakeRelativeRows(relative, op.heads, op.key_size, op.window,
                                                      binder);
                            }},
                 op.positions));
  if (op.start_row) {
    KINGLET_ASSIGN_OR_RETURN(made.start,
                             StartRow(*op.start_row, made, binder.plan.buffer(op.qkv), binder));
  } else if (op.start == StreamStart::kZeros) {
    KINGLET_ASSIGN_OR_RETURN(made.start, ZeroRow(made, binder));
  }
  return NodesOf(made, binder);
}

Nodes BindOp(const SourceAttention& op, Binder& binder) {
  KINGLET_ASSIGN_OR_RETURN(Attention made, CommonOf(op, op.query, op.memory, op.memory, binder));
  made.of_source = true;
  // In a slot of the memory, each head's part ends with its key and then its value.
  const uint32_t stride = binder.Count(op.memory) / op.window / op.heads;
  const uint64_t value_at = stride - op.value_size, key_at = stride - KeyFromEnd(op);
  const uint64_t bytes = made.codes ? sizeof(int16_t) : sizeof(float);
  made.keys = made.keys.Plus(key_at * bytes);
  made.values = made.values.Plus(value_at * bytes);
  made.key_stride = made.value_stride = stride;
  made.scale = ScoreScale<float>(op);
  if (op.score_weight) {
    KINGLET_ASSIGN_OR_RETURN(made.score_weight, binder.weights.Floats(*op.score_weight));
  }
  return NodesOf(made, binder);
}

}  // namespace kinglet::cuda

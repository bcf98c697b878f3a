// Operations on positions, and attention (kernels/op.h).
#ifndef KINGLET_KERNELS_ATTENTION_OP_H_
#define KINGLET_KERNELS_ATTENTION_OP_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>

#include "format/blocks.h"
#include "format/overloaded.h"
#include "kernels/operands.h"
#include "kernels/ring.h"

namespace kinglet {

// y += row position mod window of `table`: trained or stored positions.
struct AddPositionRow {
  static constexpr std::string_view kName = "AddPositionRow";
  WeightId table;  // [window, n]; not coded
  uint32_t window;
  BufferId y;  // [n] of floats

  void Operands(auto&& visit) const {
    visit.Weight(table);
    visit.Reads(y);
    visit.Writes(y);
  }
};

// y += sines and cosines of the position first + position mod window (AbsoluteSinusoids).
struct AddSinusoids {
  static constexpr std::string_view kName = "AddSinusoids";
  WeightId frequencies;  // [n / 2]
  uint32_t first, window;
  BufferId y;  // [n] of floats

  void Operands(auto&& visit) const {
    visit.Weight(frequencies);
    visit.Reads(y);
    visit.Writes(y);
  }
};

// Adds the content bias of relative positions to the queries, before they are quantised:
// y[h, i] += bias[h, i], i < key_size.
struct AddQueryBias {
  static constexpr std::string_view kName = "AddQueryBias";
  WeightId bias;  // [heads, key_size]
  BufferId y;     // [heads, n] of floats: the first key_size of each n are a query

  void Operands(auto&& visit) const {
    visit.Weight(bias);
    visit.Reads(y);
    visit.Writes(y);
  }
};

// The alternatives of WindowAttention::positions.

// score[s] += q . columns[:, s]
struct SlotColumns {
  WeightId columns;  // [key_size, window]
};

// Relative positions of Transformer-XL (Dai et al. 2019):
//   score[s] += q . r[h, D] + (position_bias[h] - content_bias[h]) . r[h, D]
// for the distance D = min(window - 1 - s, clamp), where r[h, D] = projection[h] R(D)
// (format/blocks.h, RelativeSinusoids) is computed when the node is bound. q has the content bias
// already (AddQueryBias).
struct RelativeRows {
  WeightId projection;                   // [heads * key_size, width]
  WeightId frequencies;                  // [width / 2]
  WeightId content_bias, position_bias;  // [heads, key_size]
  std::optional<uint32_t> clamp;
  bool rounded = false;  // RelativeSinusoids::rounded

  // How many distances differ.
  uint64_t Count(uint32_t window) const {
    return clamp ? std::min<uint64_t>(window, uint64_t{*clamp} + 1) : window;
  }
};

// One token's keys are not attended to (ESPnet and SpeechBrain call that padding). Every layer of a
// decoder stores the tokens in the same ring.
struct MaskedToken {
  BufferId tokens;  // state, [window] of kUint32: the tokens in the ring's slots
  uint32_t token;
};
// The score of a slot with the masked token. The slot's weight is then 0, unless all visible slots
// have the masked token.
inline constexpr float kMaskedScore = -1e30f;

// One token of sliding-window attention. For each head h:
//   score[s] = (q . k[s] + the term of `positions`) * key_size^-1/2, s = window slot, oldest first
//   weights = softmax(score); out = sum_s weights[s] v[s]
// The token's own k and v are first stored in ring slot position mod window.
struct WindowAttention {
  static constexpr std::string_view kName = "WindowAttention";
  BufferId qkv;  // [heads, 2 key_size + value_size]: floats or codes
  // State, [window, heads, key_size] and [window, heads, value_size] of the element of qkv; or one
  // row of 9-bit codes (kCode9) for each slot, if a head has a multiple of 8 codes.
  BufferId keys, values;
  std::variant<std::monostate, SlotColumns, RelativeRows> positions;
  uint32_t heads, key_size, value_size, window;
  StreamStart start;
  // With kZeros: the key and value of slots before the stream, quantised like qkv. Zeros without
  // it.
  std::optional<WeightId> start_row;  // [heads * key_size + heads * value_size]
  // Every `window` tokens the window empties: a token sees only slots since the last multiple of
  // `window`.
  bool restarts = false;
  std::optional<MaskedToken> masked = {};  // only with kMasked
  std::optional<ActivationQuantiser> weights_quantiser;
  // [heads, window] of floats: softmax output, before its quantiser. Elements of slots that are not
  // visible have no meaning.
  BufferId weights;
  BufferId out;  // [heads, value_size] of floats

  void Operands(auto&& visit) const {
    visit.Reads(qkv);
    visit.Reads(keys);
    visit.Reads(values);
    visit.Writes(keys);
    visit.Writes(values);
    std::visit(Overloaded{[](std::monostate) {},
                          [&](const SlotColumns& slots) { visit.Weight(slots.columns); },
                          [&](const RelativeRows& rows) {
                            visit.Weight(rows.projection);
                            visit.Weight(rows.frequencies);
                            visit.Weight(rows.content_bias);
                            visit.Weight(rows.position_bias);
                          }},
               positions);
    if (start_row) visit.Weight(*start_row);
    if (masked) {
      visit.Reads(masked->tokens);
      visit.Writes(masked->tokens);
    }
    visit.Writes(weights);
    visit.Writes(out);
  }
};

// The window of the token at `position`.
inline RingWindow WindowOf(const WindowAttention& op, uint64_t position) {
  return RingWindow(position, op.window, op.restarts);
}
// Window slots [FirstVisible, window) are visible: they take part in the softmax.
inline uint64_t FirstVisible(const WindowAttention& op, uint64_t position) {
  return op.start == StreamStart::kZeros ? 0 : WindowOf(op, position).FirstFilled();
}
// What scores are multiplied by: key_size^-1/2, rounded once.
template <class T>
T AttentionScale(uint32_t key_size) {
  return static_cast<T>(1.0 / std::sqrt(static_cast<double>(key_size)));
}

// The following operations are for models with an encoder (kernels/plan.h, EncoderPlan). In an
// encoder's sweep StreamFrame::position is the index of a source token. StreamFrame::source_length
// is the number of source tokens, at least 1 and at most the window.

// rows[position] = x.
struct StoreRow {
  static constexpr std::string_view kName = "StoreRow";
  BufferId x;     // [n]: floats or codes
  BufferId rows;  // [window, n], same element as x

  void Operands(auto&& visit) const {
    visit.Reads(x);
    visit.Writes(rows);
  }
};

// x = rows[position].
struct LoadRow {
  static constexpr std::string_view kName = "LoadRow";
  BufferId rows;  // [window, n]: floats or codes
  BufferId x;     // [n], same element as rows

  void Operands(auto&& visit) const {
    visit.Reads(rows);
    visit.Writes(x);
  }
};

// How attention to the source scores its tokens.
enum class SourceScore : uint8_t {
  kScaled,    // (q . k[s]) * key_size^-1/2
  kDot,       // q . k[s]; v is k itself, which a slot stores once, at its end
  kAdditive,  // score_weight . tanh(q + k[s]), in floats
};

// Attention to all tokens s of the source. For each head:
//   weights = softmax(score); out = sum_s weights[s] v[s]
// A head's part of the query begins with q, and its part of a slot ends with k and then v. So one
// row of query, key and value can serve as query and as slot.
struct SourceAttention {
  static constexpr std::string_view kName = "SourceAttention";
  BufferId query;   // [heads, key_size or more]: floats or codes
  BufferId memory;  // [window, heads, key_size + value_size or more]: floats, or codes as the query
  uint32_t heads, key_size, value_size, window;
  std::optional<ActivationQuantiser> weights_quantiser;  // present iff query and memory are codes
  BufferId weights;  // [heads, window] of floats; slots beyond the source keep their values
  BufferId out;      // [heads, value_size] of floats
  SourceScore score = SourceScore::kScaled;
  std::optional<WeightId> score_weight = {};  // [1, heads * key_size], not coded; of kAdditive

  void Operands(auto&& visit) const {
    visit.Reads(query);
    visit.Reads(memory);
    if (score_weight) visit.Weight(*score_weight);
    visit.Writes(weights);
    visit.Writes(out);
  }
};
// Where a head's key begins in its part of a slot, from the part's end.
inline uint64_t KeyFromEnd(const SourceAttention& op) {
  return op.score == SourceScore::kDot ? op.value_size : uint64_t{op.key_size} + op.value_size;
}
// What scores are multiplied by.
template <class T>
T ScoreScale(const SourceAttention& op) {
  return op.score == SourceScore::kScaled ? AttentionScale<T>(op.key_size) : T{1};
}

}  // namespace kinglet

#endif  // KINGLET_KERNELS_ATTENTION_OP_H_

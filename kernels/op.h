// What can be computed: one small struct per operation, with named operands. An operation says what
// is computed, never how; a backend binds each one to a kernel once, at load (kernels/backend.h).
// The readable definition of every operation is its function in kernels/ref/, which all other
// backends equal bit for bit on quantised models.
#ifndef KINGLET_KERNELS_OP_H_
#define KINGLET_KERNELS_OP_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "format/blocks.h"
#include "kernels/numerics.h"
#include "kernels/ring.h"
#include "kernels/row_cache.h"

namespace kinglet {

enum class BufferId : uint32_t {};
using WeightId = TensorId;

// Before a token is processed: remembers (hidden state of the previous step, this token) in the
// neural cache. Does nothing at position 0. Slot (position - 1) mod capacity of `keys` [capacity,
// width] gets `hidden`, and of `words` [capacity] gets the token.
struct CacheAppend {
  BufferId hidden;  // [width], the previous step's: reals, or codes
  BufferId keys;    // state, [capacity, width], same element as hidden
  BufferId words;   // state, [capacity] of kWord
  uint32_t capacity;
};

// The layers of a DeFINE unit, and where a stream keeps the rows it has computed.
struct DefineRows {
  DefineUnit unit;
  std::vector<DefineTensors> tensors;  // of the unit's layers
  RowCacheShape cache;
  BufferId work;  // [DefineWork(unit).total] of reals: vectors on their way through the layers
  BufferId rows;  // [cache.rows(), width] of reals; with `words` what a token leaves for later ones
  BufferId words;  // [cache.memory_words()] of kWord: RowCache's
};

// Where a row's vectors lie in DefineRows::work: Map's output at 0, then what skips bring back, the
// joined input of a layer, and three that the layers' outputs alternate between.
struct DefineWork {
  explicit DefineWork(const DefineUnit& unit)
      : skip(unit.map_width),
        joined(skip + WidestOf(unit).out),
        output(joined + WidestOf(unit).in),
        width(WidestOf(unit).out),
        total(output + 3 * width) {}
  uint64_t skip, joined, output, width, total;
};

// out = scale * row, where row = bin scale * (projection * table[token - first]) for the bin that
// holds the token, or what the DeFINE unit makes of that. The row of a coded table is made of
// reals, from the first position to the last. A row that a cache holds is not computed again.
struct EmbedRow {
  std::vector<EmbeddingBin> bins;
  double scale;
  BufferId out;  // [width] of reals
  std::optional<DefineRows> define = {};
};

// y = (x - mean) / sqrt(variance + epsilon) * gain + bias, biased variance, two passes.
struct LayerNorm {
  BufferId x;  // [n] of reals
  WeightId gain, bias;
  double epsilon;
  BufferId y;  // [n] of reals; may be x
};

// y = weight * x + bias, then max(., 0) where `relu`; the weight is not coded. Integer products
// where both the weight and x are integers, otherwise float products of the decoded weight with the
// (dequantised) x.
struct MatVec {
  WeightId weight;               // [rows, cols]
  std::optional<WeightId> bias;  // [rows]
  BufferId x;                    // [cols]: reals or codes
  BufferId y;                    // reals; rows go to y[y_offset, y_offset + rows)
  uint32_t y_offset = 0;
  bool relu = false;
  // kFixedPoint15: x (reals) is rounded to 15-bit fixed point first, so a quantised weight gives
  // integer products; ref64 alone keeps x exact.
  TailInput input = TailInput::kAsIs;
};

// What the rows of a coded table have in common in a product with x: for each position j and each
// sub-vector m of its pool, partial[PartialFirsts(scheme)[j] + m] = codebook[PoolFirsts()[j] + m] .
// x_j, where x_j is the j-th of D equal parts of x for concatenated rows, and x itself for sums and
// means. Products are integer where MatVec's would be, by the codebook's own encoding. Source of
// the factoring: Li et al. 2018, "Slim Embedding Layers", section 3.
struct PartialProducts {
  WeightId table;    // coded [rows, cols]
  BufferId x;        // [cols]: reals or codes
  BufferId partial;  // [PartialCount(scheme)] of reals
  TailInput input = TailInput::kAsIs;
};

// y[row] = sum over positions j of partial[PartialFirsts(scheme)[j] + code(row, j)], added in order
// of position and for means divided by D, + bias, then max(., 0) where `relu`: with the partial
// products, what MatVec says of a table that is not coded.
struct CodedSums {
  WeightId table;                // coded [rows, cols]
  std::optional<WeightId> bias;  // [rows]
  BufferId partial;
  BufferId y;  // reals; rows go to y[y_offset, y_offset + rows)
  uint32_t y_offset = 0;
  bool relu = false;
};

// Whether positions that share a pool multiply it with parts of x of their own.
inline bool SharesPoolOfParts(const CodingScheme& scheme) {
  return scheme.combine == Combine::kConcatenate && scheme.pools.size() == 1;
}
// Where each position's partial products begin.
inline std::vector<uint64_t> PartialFirsts(const CodingScheme& scheme) {
  std::vector<uint64_t> firsts = scheme.PoolFirsts();
  for (uint64_t j = 0; SharesPoolOfParts(scheme) && j < firsts.size(); ++j) {
    firsts[j] = j * scheme.pools[0];
  }
  return firsts;
}
inline uint64_t PartialCount(const CodingScheme& scheme) {
  return SharesPoolOfParts(scheme) ? uint64_t{scheme.positions} * scheme.pools[0]
                                   : scheme.PoolTotal();
}

// codes = round_half_even(clamp(x) / step) with the quantiser of the buffer `codes`.
struct Quantise {
  BufferId x;      // [n] of reals
  BufferId codes;  // [n] of codes
};

// y += x.
struct Add {
  BufferId x;  // [n]: reals, or codes (dequantised)
  BufferId y;  // [n] of reals
};

// y[first, first + count) += x[index]: a cluster's logit to those of its words.
struct AddScalar {
  BufferId x;  // reals
  uint32_t index;
  BufferId y;  // reals
  uint32_t first, count;
};

// y += row position mod window of `table`: trained or stored positions.
struct AddPositionRow {
  WeightId table;  // [window, n]; not coded
  uint32_t window;
  BufferId y;  // [n] of reals
};

// y += sines and cosines of the position first + position mod window (AbsoluteSinusoids).
struct AddSinusoids {
  WeightId frequencies;  // [n / 2]
  uint32_t first, window;
  BufferId y;  // [n] of reals
};

// Adds the content bias of relative positions to the queries, before they are quantised:
// y[h, i] += bias[h, i], i < key_size.
struct AddQueryBias {
  WeightId bias;  // [heads, key_size]
  BufferId y;     // [heads, n] of reals: the first key_size of each n are a query
};

// The alternatives of WindowAttention::positions.

// score[s] += q . columns[:, s]
struct SlotColumns {
  WeightId columns;  // [key_size, window]
};

// score[s] += q . r[h, D] + (position_bias[h] - content_bias[h]) . r[h, D], for D = window - 1 - s,
// or `clamp` where that is less, and r[h, D] = projection[h] R(D) (format/blocks.h,
// RelativeSinusoids), made when bound. q has the content bias already.
struct RelativeRows {
  WeightId projection;                   // [heads * key_size, width]
  WeightId frequencies;                  // [width / 2]
  WeightId content_bias, position_bias;  // [heads, key_size]
  std::optional<uint32_t> clamp;

  // Distances that differ.
  uint64_t Count(uint32_t window) const {
    return clamp ? std::min<uint64_t>(window, uint64_t{*clamp} + 1) : window;
  }
};

// One token of sliding-window attention. For each head h:
//   score[s] = (q . k[s] + what `positions` says) * key_size^-1/2, s = window slot, oldest first
//   weights = softmax(score); out = sum_s weights[s] v[s]
// The token's own k and v are first stored in ring slot position mod window.
struct WindowAttention {
  BufferId qkv;     // [heads, 2 key_size + value_size]: reals or codes
  BufferId keys;    // state, [window, heads, key_size], same element as qkv
  BufferId values;  // state, [window, heads, value_size], same element as qkv
  std::variant<std::monostate, SlotColumns, RelativeRows> positions;
  uint32_t heads, key_size, value_size, window;
  StreamStart start;
  // With kZeros: what slots before the stream hold in place of zeros, quantised as qkv is.
  std::optional<WeightId> start_row;  // [heads * key_size + heads * value_size]
  // Every `window` tokens a stream starts anew: no slot older than position mod window is seen.
  bool restarts = false;
  std::optional<ActivationQuantiser> weights_quantiser;
  // [heads, window] of reals: softmax output, before its quantiser. What slots that are not visible
  // hold says nothing.
  BufferId weights;
  BufferId out;  // [heads, value_size] of reals
};

// The window of the token at `position`.
inline RingWindow WindowOf(const WindowAttention& op, uint64_t position) {
  return RingWindow(position, op.window, op.restarts);
}
// Window slots [FirstVisible, window) take part.
inline uint64_t FirstVisible(const WindowAttention& op, uint64_t position) {
  return op.start == StreamStart::kZeros ? 0 : WindowOf(op, position).FirstFilled();
}
// key_size^-1/2, rounded once.
template <class T>
T AttentionScale(uint32_t key_size) {
  return static_cast<T>(1.0 / std::sqrt(static_cast<double>(key_size)));
}

// out[0] = max x, blocks[b] = sum over block b of exp(x - max), out[1] = log of their sum.
struct LogSumExp {
  BufferId x;       // [n] of reals
  BufferId out;     // [2] of reals
  BufferId blocks;  // [SumBlocks(n)] of reals
};

// Over the m = min(position, capacity) stored pairs, in storage order:
//   logit[i] = theta * (hidden . key[i]); weights[i] = exp(logit[i] - max); total[0] = sum of
//   weights
// Slots >= m are left alone. Before token `first_position` of a stream, total[0] = 0 and the
// weights are left alone; it is at least 1.
struct CacheWeights {
  BufferId hidden;  // [width]: reals or codes
  BufferId keys;    // state, [capacity, width]
  uint32_t capacity;
  double theta;
  BufferId weights;  // [capacity] of reals
  BufferId total;    // [1] of reals
  uint64_t first_position = 1;
};

// The element-wise halves of recurrent cells, one token each. `input` and `recurrent` are the two
// products of the cell, biases included, a block of n rows for each gate; s is the logistic
// sigmoid. Sums and products are rounded one by one, from left to right.

// Blocks i, f, g, o with a = input + recurrent:
//   cell = s(a_f) * cell + s(a_i) * tanh(a_g); hidden = s(a_o) * tanh(cell)
struct LstmGates {
  BufferId input, recurrent;  // [4 n] of reals
  BufferId cell;              // state, [n] of reals
  BufferId hidden;            // [n] of reals
};

// Blocks r, z, m:
//   r = s(input_r + recurrent_r); z = s(input_z + recurrent_z)
//   m = tanh(input_m + r * recurrent_m); hidden = (1 - z) * m + z * hidden
struct GruGates {
  BufferId input, recurrent;  // [3 n] of reals
  BufferId hidden;            // state, [n] of reals
};

// hidden = tanh(input + recurrent), or max(input + recurrent, 0) where `relu`.
struct RnnGates {
  BufferId input, recurrent;  // [n] of reals
  BufferId hidden;            // [n] of reals
  bool relu;
};

// Blocks z, f, o with a = input, or input + previous:
//   cell = s(a_f) * tanh(a_z) + (1 - s(a_f)) * cell; hidden = s(a_o) * cell
struct QrnnGates {
  BufferId input;                    // [3 n] of reals
  std::optional<BufferId> previous;  // [3 n] of reals: the product with the previous token's input
  BufferId cell;                     // state, [n] of reals
  BufferId hidden;                   // [n] of reals
};

// Adds the vector of one word of a list to what a bag of words is made of; position 0 of a list
// starts anew. The padding word is not in the sum and the count, and a vector of zeros to the
// maximum. The sum is one chain in list order.
struct BagAppend {
  BufferId embedded;                // [n] of reals
  BufferId sum;                     // state, [n] of reals
  BufferId words;                   // state, [1] of kWord: how many are in the sum
  std::optional<BufferId> largest;  // state, [n] of reals
  std::optional<uint32_t> padding;
};

// out = sum / words, then, where there is one, the largest. At least one word was not padding.
struct BagFeatures {
  BufferId sum, words;
  std::optional<BufferId> largest;
  BufferId out;  // [n] or [2 n] of reals
};

// y = max(x * scale + shift, 0), each operation rounded: batch normalisation with fixed statistics,
// and the activation after it.
struct ScaleShiftRelu {
  BufferId x;             // [n] of reals
  WeightId scale, shift;  // [n]
  BufferId y;             // [n] of reals; may be x
};

// The rest is of models with an encoder (kernels/plan.h, EncoderPlan). In an encoder's pass
// StreamFrame::position is the index of a source token; everywhere StreamFrame::source_length is
// how many there are, which is at least 1 and at most the window.

// rows[position] = x.
struct StoreRow {
  BufferId x;     // [n]: reals or codes
  BufferId rows;  // [window, n], same element as x
};

// x = rows[position].
struct LoadRow {
  BufferId rows;  // [window, n]: reals or codes
  BufferId x;     // [n], same element as rows
};

// Attention to all tokens s of the source. For each head:
//   score[s] = (q . k[s]) * key_size^-1/2; weights = softmax(score); out = sum_s weights[s] v[s]
// A head's part of the query begins with q, and its part of a slot ends with k and then v, so that
// rows of queries, keys and values together serve as either.
struct SourceAttention {
  BufferId query;   // [heads, key_size or more]: reals or codes
  BufferId memory;  // [window, heads, key_size + value_size or more]: reals, or codes as the query
  uint32_t heads, key_size, value_size, window;
  std::optional<ActivationQuantiser> weights_quantiser;  // present iff query and memory are codes
  BufferId weights;  // [heads, window] of reals; those of slots beyond the source are left alone
  BufferId out;      // [heads, value_size] of reals
};

using Op =
    std::variant<CacheAppend, EmbedRow, LayerNorm, MatVec, PartialProducts, CodedSums, Quantise,
                 Add, AddScalar, AddPositionRow, AddSinusoids, AddQueryBias, WindowAttention,
                 LogSumExp, CacheWeights, LstmGates, GruGates, RnnGates, QrnnGates, BagAppend,
                 BagFeatures, ScaleShiftRelu, StoreRow, LoadRow, SourceAttention>;

}  // namespace kinglet

#endif  // KINGLET_KERNELS_OP_H_

// What can be computed: one small struct per operation, with named operands. An operation describes
// what is computed, never how; a backend binds each one to a kernel once, at load
// (kernels/backend.h). The readable definition of every operation is its function in kernels/ref/,
// which all other backends equal bit for bit on quantised models.
#ifndef KINGLET_KERNELS_OP_H_
#define KINGLET_KERNELS_OP_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "format/activation.h"
#include "format/blocks.h"
#include "format/encoding.h"
#include "format/small_build.h"
#include "kernels/attention_op.h"
#include "kernels/numerics.h"
#include "kernels/operands.h"
#include "kernels/recurrent_op.h"
#include "kernels/row_cache.h"

namespace kinglet {

// The neural cache (Grave et al. 2017) stores the pair (hidden state of the previous token, current
// token) before the current token is processed. Does nothing at position 0. Slot (position - 1) mod
// capacity of `keys` gets `hidden`, and that slot of `tokens` gets the token.
struct CacheAppend {
  static constexpr std::string_view kName = "CacheAppend";
  BufferId hidden;  // [width], of the previous token: floats, or codes
  BufferId keys;    // state, [capacity, width]: floats or codes as hidden, codes perhaps in 9 bits
  BufferId tokens;  // state, [capacity] of kUint32
  uint32_t capacity;

  void Operands(auto&& visit) const {
    visit.Reads(hidden);
    visit.Writes(keys);
    visit.Writes(tokens);
  }
};

// The layers of a DeFINE unit (Mehta et al. 2020), and where a stream keeps the rows it has already
// computed.
struct DefineRows {
  uint32_t first_bin, bin_count;  // the Map layer
  DefineUnit unit;
  std::vector<DefineTensors> tensors;  // of the unit's layers
  RowCacheShape cache;
  BufferId work;       // [DefineWork(unit).total] of floats: vectors between the layers
  BufferId rows;       // [cache.rows(), width] of floats: cached rows, for later tokens
  BufferId row_index;  // [cache.index_size()] of kUint32: the memory of RowCache
  std::optional<BufferId> spelling = {};  // [SpellingWork::total] of floats, of a bin with spelling

  void Operands(auto&& visit) const {
    for (const DefineTensors& layer : tensors) {
      visit.Weight(layer.weight);
      if (layer.bias) visit.Weight(*layer.bias);
      if (layer.norm_gain) visit.Weight(*layer.norm_gain);
      if (layer.norm_offset) visit.Weight(*layer.norm_offset);
    }
    visit.Reads(rows);
    visit.Reads(row_index);
    visit.Writes(work);
    visit.Writes(rows);
    visit.Writes(row_index);
    if (spelling) visit.Writes(*spelling);
  }
};

// Where vectors lie in DefineRows::work: the output of the Map layer at 0, then the vector of skip
// connections, the joined input of a layer, and three vectors that the layers' outputs alternate
// between.
struct DefineWork {
  explicit DefineWork(const DefineUnit& unit)
      : skip(unit.map_width),
        joined(skip + WidestOf(unit).products),
        output(joined + WidestOf(unit).in),
        width(WidestOf(unit).products),
        total(output + 3 * width) {}
  uint64_t skip, joined, output, width, total;
};

// How many windows of a spelling are multiplied together at most.
inline constexpr size_t kWindowsTogether = 8;

// The windows of a filter over a word of `length` bytes that can differ: after the word's end all
// have paddings alone. REQUIRES: width <= longest.
inline uint32_t WindowsOf(uint32_t width, uint32_t length, uint32_t longest) {
  return std::min(length, longest - width) + 1;
}

// Where vectors lie in DefineRows::spelling: those of the word's bytes at 0, then the products of
// the windows that are multiplied together.
struct SpellingWork {
  // REQUIRES: the bin has a spelling.
  SpellingWork(const EmbeddingBin& bin, std::span<const TensorView> weights)
      : products(uint64_t{bin.spelling->longest} * Cols(weights[bin.table].shape)),
        total(products) {
    uint64_t widest = 0;
    for (const ByteFilter& filter : bin.spelling->filters) {
      widest = std::max(widest, Rows(weights[filter.weight].shape));
    }
    total += kWindowsTogether * widest;
  }
  uint64_t products, total;
};

// out = scale * row, where row = bin scale * (projection * table[token - first]) for the bin that
// contains the token. Where the bin is a DeFINE unit's, that row is the unit's input, and the
// unit's output replaces it. The row of a coded table is computed in floats, from the first
// position to the last. A bin with a spelling computes the row from the word's bytes, also for
// words that the vocabulary lacks (StreamFrame::word). A cached row is not computed again.
struct EmbedRow {
  static constexpr std::string_view kName = "EmbedRow";
  std::vector<EmbeddingBin> bins;
  double scale;
  BufferId out;                        // [width] of floats
  std::vector<DefineRows> units = {};  // in the order of their bins

  // The bins of a unit, and those of none.
  std::span<const EmbeddingBin> BinsOf(const DefineRows& unit) const {
    return std::span(bins).subspan(unit.first_bin, unit.bin_count);
  }
  // The bins of a unit whose rows are a table's.
  std::span<const EmbeddingBin> TablesOf(const DefineRows& unit) const {
    return BinsOf(unit).first(unit.bin_count - (SpellingOf(unit) == nullptr ? 0 : 1));
  }
  // The bin of a unit that has a spelling; nullptr if there is none.
  const EmbeddingBin* SpellingOf(const DefineRows& unit) const {
    const EmbeddingBin& last = BinsOf(unit).back();
    return last.spelling ? &last : nullptr;
  }
  std::vector<EmbeddingBin> BinsWithoutUnit() const {
    std::vector<EmbeddingBin> without;
    for (size_t i = 0; i < bins.size(); ++i) {
      if (UnitOf(units, i) == nullptr) without.push_back(bins[i]);
    }
    return without;
  }

  void Operands(auto&& visit) const {
    for (const EmbeddingBin& bin : bins) {
      visit.Weight(bin.table);
      visit.Codes(bin.table);
      if (bin.projection) visit.Weight(*bin.projection);
      if (!bin.spelling) continue;
      for (const ByteFilter& filter : bin.spelling->filters) {
        visit.Weight(filter.weight);
        visit.Weight(filter.bias);
      }
    }
    visit.Writes(out);
    for (const DefineRows& unit : units) unit.Operands(visit);
  }
};

// y = (x - mean) / sqrt(variance + epsilon) * gain + bias, with the biased variance, which a second
// read of x gives.
struct LayerNorm {
  static constexpr std::string_view kName = "LayerNorm";
  BufferId x;  // [n] of floats
  WeightId gain, bias;
  double epsilon;
  BufferId y;  // [n] of floats; may be x

  void Operands(auto&& visit) const {
    visit.Reads(x);
    visit.Weight(gain);
    visit.Weight(bias);
    visit.Writes(y);
  }
};

// y = x / sqrt(mean of x^2 + epsilon): icefall's BasicNorm, without a trained gain.
struct RootMeanSquareNorm {
  static constexpr std::string_view kName = "RootMeanSquareNorm";
  BufferId x;  // [n] of floats
  double epsilon;
  BufferId y;  // [n] of floats; may be x

  void Operands(auto&& visit) const {
    visit.Reads(x);
    visit.Writes(y);
  }
};

// x[i] = activation(x[i]).
struct ApplyActivation {
  static constexpr std::string_view kName = "ApplyActivation";
  BufferId x;  // [n] of floats
  Activation activation;

  void Operands(auto&& visit) const {
    visit.Reads(x);
    visit.Writes(x);
  }
};

// y = weight * x + bias, then max(., 0) where `relu`; the weight is not coded. Integer products
// where both the weight and x are integers, otherwise float products of the decoded weight with the
// (dequantised) x.
struct MatVec {
  static constexpr std::string_view kName = "MatVec";
  WeightId weight;               // [rows, cols]
  std::optional<WeightId> bias;  // [rows]
  BufferId x;                    // [cols]: floats or codes
  BufferId y;                    // floats; rows go to y[y_offset, y_offset + rows)
  uint32_t y_offset = 0;
  bool relu = false;
  // With kFixedPoint15, x (floats) is first rounded to 15-bit fixed point, so that products with a
  // quantised weight are integer products. Only ref64 keeps x exact.
  TailInput input = TailInput::kAsIs;

  void Operands(auto&& visit) const {
    visit.Weight(weight);
    if (bias) visit.Weight(*bias);
    visit.Reads(x);
    visit.Writes(y);
  }
};

// The products with x that the rows of a coded table share, one for each sub-vector of the
// codebook:
//   partial[PartialFirsts(scheme)[j] + m] = codebook[PoolFirsts()[j] + m] . x_j
// for each position j and each sub-vector m of its pool. x_j is the j-th of D equal parts of x
// where the table concatenates sub-vectors, and x itself where it adds or averages them. Products
// are integer where MatVec's would be with the codebook as its weight. Source of the factoring: Li
// et al. 2018, "Slim Embedding Layers", section 3.
struct PartialProducts {
  static constexpr std::string_view kName = "PartialProducts";
  WeightId table;    // coded [rows, cols]
  BufferId x;        // [cols]: floats or codes
  BufferId partial;  // [PartialCount(scheme)] of floats
  TailInput input = TailInput::kAsIs;

  void Operands(auto&& visit) const {
    visit.Weight(table);
    visit.Reads(x);
    visit.Writes(partial);
  }
};

// y[row] = sum over positions j of partial[PartialFirsts(scheme)[j] + code(row, j)], added in order
// of position, divided by D for means, + bias, then max(., 0) where `relu`. After PartialProducts
// this is MatVec with a coded table.
struct CodedSums {
  static constexpr std::string_view kName = "CodedSums";
  WeightId table;                // coded [rows, cols]
  std::optional<WeightId> bias;  // [rows]
  BufferId partial;
  BufferId y;  // floats; rows go to y[y_offset, y_offset + rows)
  uint32_t y_offset = 0;
  bool relu = false;

  void Operands(auto&& visit) const {
    visit.Weight(table);
    visit.Codes(table);
    if (bias) visit.Weight(*bias);
    visit.Reads(partial);
    visit.Writes(y);
  }
};

// Whether all positions have one pool in common, but each multiplies it with its own part of x.
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
// An upper bound of the bytes that a kernel keeps for the positions of a coded table: pools,
// offsets, ranges of memory.
inline uint64_t BytesOfPositions(const TensorView& table) {
  return table.coded()->scheme.positions * uint64_t{128};
}
inline uint64_t PartialCount(const CodingScheme& scheme) {
  return SharesPoolOfParts(scheme) ? uint64_t{scheme.positions} * scheme.pools[0]
                                   : scheme.PoolTotal();
}

// PartialProducts and CodedSums in one: each product is computed where a row needs it, for a table
// whose rows need fewer products than its codebook could give (NeedsFewProducts).
struct CodedProduct {
  static constexpr std::string_view kName = "CodedProduct";
  WeightId table;                // coded [rows, cols]
  std::optional<WeightId> bias;  // [rows]
  BufferId x;                    // [cols]: floats or codes
  BufferId y;                    // floats; rows go to y[y_offset, y_offset + rows)
  uint32_t y_offset = 0;
  bool relu = false;
  TailInput input = TailInput::kAsIs;

  void Operands(auto&& visit) const {
    visit.Weight(table);
    visit.Codes(table);
    if (bias) visit.Weight(*bias);
    visit.Reads(x);
    visit.Writes(y);
  }
};
// Whether rows of the table have fewer sub-vectors in all than there are partial products.
inline bool NeedsFewProducts(const TensorView& table) {
  const CodingScheme& scheme = table.coded()->scheme;
  return Rows(table.shape) * scheme.positions < PartialCount(scheme);
}

// codes = round_half_even(clamp(x) / scale) with the quantiser of the buffer `codes`.
struct Quantise {
  static constexpr std::string_view kName = "Quantise";
  BufferId x;      // [n] of floats
  BufferId codes;  // [n] of codes

  void Operands(auto&& visit) const {
    visit.Reads(x);
    visit.Writes(codes);
  }
};

// y += x.
struct Add {
  static constexpr std::string_view kName = "Add";
  BufferId x;  // [n]: floats, or codes (dequantised)
  BufferId y;  // [n] of floats

  void Operands(auto&& visit) const {
    visit.Reads(x);
    visit.Reads(y);
    visit.Writes(y);
  }
};

// y = the parts one after the other, followed by zeros.
struct JoinPart {
  BufferId x;  // floats
  uint64_t first, count;
};
struct Join {
  static constexpr std::string_view kName = "Join";
  std::vector<JoinPart> parts;  // may be empty
  BufferId y;                   // [sum of counts or more] of floats; not the buffer of a part

  void Operands(auto&& visit) const {
    for (const JoinPart& part : parts) visit.Reads(part.x);
    visit.Writes(y);
  }
};

// y[first, first + count) += x[index]: adds a cluster's logit to the logits of its tokens.
struct AddScalar {
  static constexpr std::string_view kName = "AddScalar";
  BufferId x;  // floats
  uint32_t index;
  BufferId y;  // floats
  uint32_t first, count;

  void Operands(auto&& visit) const {
    visit.Reads(x);
    visit.Reads(y);
    visit.Writes(y);
  }
};

// What is kept for each tile of kSumTile logits: buffers of [SumTiles(n)] floats.
struct LogitTiles {
  BufferId largest;  // the largest logit
  BufferId sums;     // the sum of exp(x - reference), with the reference of all tiles
};

// out[0] = SoftmaxReference(max x), out[1] = log of the sum of exp(x - out[0]), out[2] = max x;
// `tiles` gets the largest logit and the sum of each tile. A tile is first summed relative to its
// own reference, so that logits are read once (docs/NUMERICS.md, rule 5):
//   sums[b] = (sum over tile b of SoftmaxTerm(x - reference[b])) * exp(reference[b] - out[0]) with
//   reference[b] = TileReference(largest[b])
struct LogSumExp {
  static constexpr std::string_view kName = "LogSumExp";
  BufferId x;    // [n] of floats
  BufferId out;  // [kCount] of floats
  static constexpr uint64_t kCount = 3;
  LogitTiles tiles;

  void Operands(auto&& visit) const {
    visit.Reads(x);
    visit.Writes(out);
    visit.Writes(tiles.largest);
    visit.Writes(tiles.sums);
  }
};

// Over the m = min(position, capacity) stored pairs, in storage order:
//   logit[i] = theta * (hidden . key[i]); weights[i] = CacheWeight(exp(logit[i] - max))
//   total[0] = sum of weights
// Slots >= m have no meaning. Before token `first_position` of a stream, total[0] = 0 and no weight
// has a meaning.
struct CacheWeights {
  static constexpr std::string_view kName = "CacheWeights";
  BufferId hidden;  // [width]: floats or codes
  BufferId keys;    // state, [capacity, width]
  uint32_t capacity;
  double theta;
  BufferId weights;             // [capacity] of floats
  BufferId total;               // [1] of floats
  uint64_t first_position = 1;  // at least 1

  void Operands(auto&& visit) const {
    visit.Reads(hidden);
    visit.Reads(keys);
    visit.Writes(weights);
    visit.Writes(total);
  }
};

using Op = std::variant<CacheAppend, EmbedRow, LayerNorm, MatVec, PartialProducts, CodedSums,
                        CodedProduct, Quantise, Add, AddScalar, AddPositionRow, AddSinusoids,
                        AddQueryBias, WindowAttention, LogSumExp, CacheWeights, LstmGates, GruGates,
                        RnnGates, QrnnGates, BagAppend, BagFeatures, ScaleShiftRelu, StoreRow,
                        LoadRow, SourceAttention, RootMeanSquareNorm, ApplyActivation, Join>;

// Whether a small build has no kernel of the operation, which no language model needs.
template <class Operation>
inline constexpr bool kOfOtherModels =
    kLeftOut<Operation, BagAppend, BagFeatures, ScaleShiftRelu, StoreRow, LoadRow, SourceAttention>;

inline std::string_view OpName(const Op& op) {
  return std::visit([](const auto& each) { return each.kName; }, op);
}
}  // namespace kinglet

#endif  // KINGLET_KERNELS_OP_H_

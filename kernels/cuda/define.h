// Embedding rows that a DeFINE unit computes (kernels/op.h, DefineRows; Mehta et al. 2020), and the
// lane's cache of rows. C++17.
//
// One thread block does all work for a lane. For most tokens it only copies a row from the cache.
// Otherwise it computes the Map layer's row and runs the unit layer by layer: half a warp computes
// an output of a group linear transformation (TwoRowSums), and the thread block computes
// normalisation and activation. Shared memory: the chains of two sums (sums.h), and the cache slot
// that one thread found. The sums follow rule 4 of docs/NUMERICS.md, so a row has the reference's
// bits.
#ifndef KINGLET_KERNELS_CUDA_DEFINE_H_
#define KINGLET_KERNELS_CUDA_DEFINE_H_

#include <cstdint>

#include "kernels/activation.h"
#include "kernels/cuda/dots.h"
#include "kernels/cuda/embedding.h"
#include "kernels/cuda/node.h"
#include "kernels/cuda/product.h"
#include "kernels/cuda/vectors.h"

namespace kinglet::cuda {

// Which rows a lane's cache contains: the RowCache of kernels/row_cache.h, by one thread. The cache
// is set-associative; `row_index` is its memory: for each slot, token + 1 (0 if empty) and age.
struct CachedRows {
  uint32_t sets, ways;
  static constexpr uint64_t kNone = UINT64_MAX;

  // The slot of the token's row, or kNone.
  KINGLET_HOST_DEVICE uint64_t Find(uint32_t* row_index, uint32_t token) const {
    const uint64_t first = uint64_t{token % sets} * ways;
    for (uint64_t slot = first; slot < first + ways; ++slot) {
      if (row_index[2 * slot] != token + 1) continue;
      Touch(row_index, first, slot, row_index[2 * slot + 1]);
      return slot;
    }
    return kNone;
  }
  // Gives the token a slot: an empty one of its set, or that of the oldest row. REQUIRES: Find has
  // not found the token.
  KINGLET_HOST_DEVICE uint64_t Take(uint32_t* row_index, uint32_t token) const {
    const uint64_t first = uint64_t{token % sets} * ways;
    uint64_t taken = first;
    for (uint64_t slot = first; slot < first + ways; ++slot) {
      if (row_index[2 * slot] == 0) {
        taken = slot;
        break;
      }
      if (row_index[2 * slot + 1] > row_index[2 * taken + 1]) taken = slot;
    }
    Touch(row_index, first, taken, ways);
    row_index[2 * taken] = token + 1;
    return taken;
  }

 private:
  KINGLET_HOST_DEVICE void Touch(uint32_t* row_index, uint64_t first, uint64_t touched,
                                 uint32_t age) const {
    for (uint64_t slot = first; slot < first + ways; ++slot) {
      if (row_index[2 * slot] != 0 && row_index[2 * slot + 1] < age) ++row_index[2 * slot + 1];
    }
    row_index[2 * touched + 1] = 0;
  }
};

// A bin of the Map layer: its row, or if there is a projection, the projection times the row.
struct MapBin {
  GatheredBin row;
  bool projected;
  StoredRows projection;  // [map_width, cols of the row]
  float scale;            // multiplies the product

  KINGLET_HOST_DEVICE bool Contains(uint32_t token) const { return row.Contains(token); }
};

// A filter of a character CNN (format/embedding_blocks.h).
struct SpellingFilter {
  const float* weight;  // [channels, width * c]
  const float* bias;    // [channels]
  uint32_t width, channels;
};

// The bin of words whose rows a character CNN computes from their bytes.
struct SpelledBin {
  const SpellingFilter* filters;  // [filter_count]; null without such a bin
  const float* bytes;             // [kSpellingSymbols, c]
  uint32_t filter_count, widest;
  uint32_t first, longest, c;
  float scale;
  Place vectors;  // of the word's bytes

  KINGLET_HOST_DEVICE bool Contains(uint32_t word) const {
    return filters != nullptr && word >= first;
  }
};

// A layer of the unit (format/define_unit.h documents the fields).
struct UnitLayer {
  const float* weight;  // [out or out / groups, in / groups]
  const float* bias;    // [biases], repeated over the outputs; null without a bias
  uint32_t biases;
  uint32_t in, out, groups;
  bool shared;                    // one matrix for all groups
  bool shuffles, shuffles_first;  // shuffles_first: before the normalisation
  uint32_t norm_parts;            // each is normalised by itself; 0 if nothing is
  float norm_epsilon;
  const float* norm_gain;    // [out / norm_parts], or null
  const float* norm_offset;  // [out / norm_parts], or null
  Activation activation;
  uint32_t joined_chunks;  // of e and of the previous output, interleaved; 0 without e
  bool input_first;
  bool adds_before, adds_after;  // the previous output, before or after the activation
  bool highway;                  // as many gates follow the `out` products
};

struct ComputeDefineRow : ByLane {
  const MapBin* bins;  // [bin_count]
  uint32_t bin_count;
  const SpelledBin* spelled;
  const UnitLayer* layers;  // [layer_count]
  uint32_t layer_count, entry_layers, map_width, width;
  // Offsets of the unit's vectors in `work` (DefineWork).
  uint64_t skip, joined, output, output_width;
  Place work, rows, row_index, out;
  CachedRows cache;
  float scale;
  uint64_t max_chains;  // BlockSumFloats of the widest normalisation

  KINGLET_HOST_DEVICE uint64_t SharedBytes() const {
    return 2 * SharedMemory::Bytes<float>(max_chains) + SharedMemory::Bytes<uint64_t>(1);
  }
};

namespace internal {

// Block-wide: e [map_width] = the output of the Map layer for the lane's token.
KINGLET_HOST_DEVICE inline void MapRow(const MapBin& bin, const Work& work, const Lane& lane,
                                       uint32_t map_width, float* e) {
  Gather(bin.row, work, lane);
  if (!bin.projected) return;
  if (bin.row.as_codes) {
    const int16_t* codes = work.At<int16_t>(lane, bin.row.to);
    const ByteMatrix& matrix = bin.projection.integers;
    const float scale = *work.At<float>(lane, bin.row.code_scale);
    work.block.ForEach(
        map_width, [&](uint64_t row) { e[row] = matrix.Product(row, codes, scale) * bin.scale; });
    return;
  }
  const float* x = work.At<float>(lane, bin.row.to);
  BlockRowSums(
      work.block, map_width, bin.projection.cols,
      [&](float sum, uint64_t row, uint64_t i) {
        return fmaf(bin.projection.Value(row, i), x[i], sum);
      },
      [&](uint64_t row, float sum) { e[row] = sum * bin.scale; });
}

// Block-wide: row = the CNN's output for the lane's word.
KINGLET_HOST_DEVICE inline void SpelledRow(const SpelledBin& bin, const Work& work,
                                           const Lane& lane, float* row) {
  float* const vectors = work.At<float>(lane, bin.vectors);
  const uint32_t longer = lane.letters + bin.widest;
  const uint32_t read = longer < bin.longest ? longer : bin.longest;
  work.block.ForEach(uint64_t{read} * bin.c, [&](uint64_t i) {
    const uint64_t at = i / bin.c;
    const uint64_t symbol = at < lane.letters ? uint64_t{1} + lane.spelling[at] : 0;
    vectors[i] = bin.bytes[symbol * bin.c + i % bin.c];
  });
  for (uint32_t f = 0; f < bin.filter_count; ++f) {
    const SpellingFilter& filter = bin.filters[f];
    const uint32_t most = bin.longest - filter.width;
    const uint32_t last = lane.letters < most ? lane.letters : most;
    const uint64_t inputs = uint64_t{filter.width} * bin.c;
    for (uint32_t window = 0; window <= last; ++window) {
      const float* const x = vectors + uint64_t{window} * bin.c;
      BlockRowSums(
          work.block, filter.channels, inputs,
          [&](float sum, uint64_t channel, uint64_t i) {
            return fmaf(filter.weight[channel * inputs + i], x[i], sum);
          },
          [&](uint64_t channel, float sum) {
            if (window == 0 || row[channel] < sum) row[channel] = sum;
          });
    }
    work.block.ForEach(filter.channels, [&](uint64_t channel) {
      const float sum = row[channel] + filter.bias[channel];
      row[channel] = (sum < 0.0f ? 0.0f : sum) * bin.scale;
    });
    row += filter.channels;
  }
}

// Block-wide: the layer's normalisation of x [out], in place.
KINGLET_HOST_DEVICE inline void NormaliseParts(const UnitLayer& layer, const Block& block, float* x,
                                               float* sums, float* squares) {
  const uint32_t width = layer.norm_parts == 0 ? 0 : layer.out / layer.norm_parts;
  for (uint32_t part = 0; part < layer.norm_parts; ++part) {
    float* const own = x + uint64_t{part} * width;
    Normalise(block, own, width, layer.norm_epsilon, layer.norm_gain, layer.norm_offset, own, sums,
              squares);
  }
}

// Block-wide: `output` [out] of a layer from e and the previous layer's output [width].
KINGLET_HOST_DEVICE inline void ApplyLayer(const UnitLayer& layer, const Block& block,
                                           const float* e, const float* previous, uint32_t width,
                                           float* joined, float* unshuffled, float* output,
                                           float* sums, float* squares) {
  const float* input = previous;
  if (layer.joined_chunks != 0) {
    const uint32_t of_e = (layer.in - width) / layer.joined_chunks;
    const uint32_t of_previous = width / layer.joined_chunks;
    block.ForEach(layer.in, [&](uint64_t i) {
      const uint64_t chunk = i / (of_e + of_previous), at = i % (of_e + of_previous);
      const uint64_t first = layer.input_first ? of_e : of_previous;
      const bool from_e = (at < first) == layer.input_first;
      const uint64_t own = at < first ? at : at - first;
      joined[i] = from_e ? e[chunk * of_e + own] : previous[chunk * of_previous + own];
    });
    input = joined;
  }
  float* const product = layer.shuffles || layer.highway ? unshuffled : output;
  const uint64_t in = layer.in / layer.groups, out = layer.out / layer.groups;
  BlockRowSums(
      block, layer.highway ? 2 * uint64_t{layer.out} : layer.out, in,
      [&](float sum, uint64_t feature, uint64_t i) {
        const uint64_t row = layer.shared ? feature % out : feature;
        const uint64_t group = layer.highway ? 0 : feature / out;
        return fmaf(layer.weight[row * in + i], input[group * in + i], sum);
      },
      [&](uint64_t feature, float sum) {
        product[feature] = layer.bias == nullptr ? sum : sum + layer.bias[feature % layer.biases];
      });
  if (layer.highway) {
    block.ForEach(layer.out, [&](uint64_t feature) {
      float& proposal = product[feature];
      float& gate = product[layer.out + feature];
      proposal = Activated(layer.activation, proposal);
      gate = Activated(Activation::kSigmoid, gate);
      output[feature] = gate * previous[feature] + (1 - gate) * proposal;
    });
    return;
  }
  if (!layer.shuffles || !layer.shuffles_first) {
    NormaliseParts(layer, block, product, sums, squares);
  }
  if (layer.shuffles) {
    block.ForEach(layer.out,
                  [&](uint64_t i) { output[i % out * layer.groups + i / out] = product[i]; });
    if (layer.shuffles_first) NormaliseParts(layer, block, output, sums, squares);
  }
  block.ForEach(layer.out, [&](uint64_t feature) {
    float value = output[feature];
    if (layer.adds_before) value += previous[feature];
    value = Activated(layer.activation, value);
    if (layer.adds_after) value += previous[feature];
    output[feature] = value;
  });
}

// Block-wide: runs the unit's layers on the Map layer's output, which is at the beginning of
// `work`. Returns the unit's output, which is somewhere in `work`.
KINGLET_HOST_DEVICE inline const float* ApplyUnit(const ComputeDefineRow& p, const Block& block,
                                                  float* work, float* sums, float* squares) {
  const float* e = work;
  const float* previous = work;
  float* const unshuffled = work + p.output;
  float* output = unshuffled + p.output_width;
  float* other = output + p.output_width;
  uint32_t width = p.map_width;
  for (uint32_t i = 0; i < p.layer_count; ++i) {
    if (i == p.entry_layers && i > 0) {
      float* const skip = work + p.skip;
      block.ForEach(width, [&](uint64_t k) { skip[k] = previous[k]; });
      e = skip;
    }
    ApplyLayer(p.layers[i], block, e, previous, width, work + p.joined, unshuffled, output, sums,
               squares);
    // The next layer reads this output and overwrites the one before.
    float* const made = output;
    output = other;
    other = made;
    previous = made;
    width = p.layers[i].out;
  }
  return previous;
}

}  // namespace internal

KINGLET_HOST_DEVICE inline void Run(const ComputeDefineRow& p, const Work& work) {
  const Lane& lane = work.lanes[work.item];
  const Block& block = work.block;
  SharedMemory shared(block);
  float* const sums = shared.Take<float>(p.max_chains);
  float* const squares = shared.Take<float>(p.max_chains);
  uint64_t* const slot = shared.Take<uint64_t>(1);
  float* const out = work.At<float>(lane, p.out);
  float* const rows = work.At<float>(lane, p.rows);
  uint32_t* const row_index = work.At<uint32_t>(lane, p.row_index);
  block.ForEach(1, [&](uint64_t) { *slot = p.cache.Find(row_index, lane.word); });
  const uint64_t found = *slot;
  block.Barrier();  // all threads have read `slot` before it is written again, here or for a lane
  if (found != CachedRows::kNone) {
    const float* const row = rows + found * p.width;
    block.ForEach(p.width, [&](uint64_t i) { out[i] = row[i]; });
    return;
  }
  float* const vectors = work.At<float>(lane, p.work);
  if (p.spelled->Contains(lane.word)) {
    internal::SpelledRow(*p.spelled, work, lane, vectors);
  } else {
    const MapBin* const bin = BinOf(p.bins, p.bin_count, lane.word);
    if (bin == nullptr) return;
    internal::MapRow(*bin, work, lane, p.map_width, vectors);
  }
  const float* const row = internal::ApplyUnit(p, block, vectors, sums, squares);
  block.ForEach(1, [&](uint64_t) { *slot = p.cache.Take(row_index, lane.word); });
  float* const kept = rows + *slot * p.width;
  block.ForEach(p.width, [&](uint64_t i) { kept[i] = out[i] = row[i] * p.scale; });
}

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_DEFINE_H_
